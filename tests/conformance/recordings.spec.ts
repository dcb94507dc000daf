import { type Environment, serve } from '@palestra/environment-kit';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addRemote, type Palestra, startPalestra } from '../support/palestra.ts';
import { environments167, mathEnvironments, rawEnvironments } from './recorded-environments.ts';
import { sdist, startUpstream, type Upstream, type UpstreamOptions } from './support/python.ts';
import { type Allowance, type Exchange, fold, readRecording, replay } from './support/replay.ts';

/**
 * Recorded exchanges of the official clients with the reference servers, played against us. The reference servers stand
 * behind us with the recorded environments; the allowances below list the differences and their reasons.
 */
const recordedKey = 'or_testkey';

const bare: Allowance = {
  why: 'bare paths are answered directly instead of by a redirect to the explicit path',
  applies: ({ status }) => status === 308 || status === 307,
  status: [200, 404, 400],
};
const doubleSlash: Allowance = {
  why: 'a trailing slash in OPENREWARD_SESSION_URL must not kill the session',
  applies: ({ path: requested }) => requested === '//ping',
  status: 200,
};
const tombstones: Allowance = {
  why: 'a session that is known to be gone is 410, not 404',
  applies: ({ status, headers }) => status === 404 && headers['x-session-id'] !== undefined,
  status: 410,
};
const held: Allowance = {
  why: 'a request during setup is held instead of refused',
  applies: ({ status }) => status === 503,
  status: 200,
};
const reasons: Allowance = {
  why: 'ok:false gains `reason`; the texts of a validator after its prefix are its own',
  applies: ({ path: requested }) => requested.endsWith('/call'),
  normalise: (body) => {
    const outcome = (body as { value?: { ok?: boolean; error?: string } }).value;
    if (outcome?.ok !== false) return body;
    const error = outcome.error?.startsWith('Tool input validation error: ') ? 'Tool input validation error: ' : outcome.error;
    return { ok: false, error };
  },
};
const newerTools: Allowance = {
  why: '`/tools` may say terminal_tool: null where an older server says nothing',
  applies: ({ path: requested }) => requested.endsWith('tools'),
  normalise: (body) => {
    const answer = body as { terminal_tool?: unknown };
    return answer.terminal_tool === null ? { ...answer, terminal_tool: undefined } : body;
  },
};
const validation: Allowance = {
  why: 'the item texts of a 422 are the validator’s own',
  applies: ({ status }) => status === 422,
  anyBody: true,
};
const version: Allowance = {
  why: 'GET /version names the server that answers it',
  applies: ({ path: requested }) => requested.endsWith('/version'),
  normalise: (body) => ({ ...(body as object), version: undefined }),
};
const unknownEnvironment: Allowance = {
  why: 'an unknown environment is named, where the reference redirects into an unknown path',
  applies: ({ path: requested, status }) => requested === '/doesnotexist/task' && status === 404,
  anyBody: true,
};
const emptyError: Allowance = {
  why: 'an error without a text reads the same to every client with the text that clients put there themselves',
  applies: ({ body }) => body.includes('"boom_empty"'),
  normalise: () => ({ kind: 'error' }),
};
const maskedSecrets: Allowance = {
  why: 'what a tool tells of the secrets of its session is masked (ADR 12)',
  applies: ({ body }) => body.includes('"secretz"'),
  normalise: (value) =>
    JSON.parse(
      JSON.stringify(value)
        .replaceAll('dummy-openai-key', '[secret:OPENAI_API_KEY]')
        .replaceAll('dummy-value', '[secret:MY_SECRET]')
        .replaceAll(recordedKey, '[secret:api_key]'),
    ) as unknown,
};
const table = [
  maskedSecrets,
  version,
  unknownEnvironment,
  emptyError,
  bare,
  doubleSlash,
  tombstones,
  held,
  reasons,
  newerTools,
  validation,
];

/**
 * The reference answers a bare path by a redirect to the explicit one. Each such pair becomes one request: the bare path
 * must answer at once what the recorded explicit path answered.
 */
function withBarePaths(exchanges: Exchange[]): Exchange[] {
  const redirects: Exchange[] = [];
  const followed = new Map<Exchange, Exchange>();
  for (const exchange of exchanges) {
    if (exchange.status === 308) {
      redirects.push(exchange);
      continue;
    }
    const index = redirects.findIndex(
      (redirect) =>
        exchange.path.endsWith(redirect.path) &&
        exchange.body === redirect.body &&
        exchange.headers['x-session-id'] === redirect.headers['x-session-id'],
    );
    if (index >= 0) followed.set(exchange, redirects.splice(index, 1)[0]!);
  }
  const answered = new Set(followed.values());
  return exchanges
    .filter((exchange) => !answered.has(exchange))
    .map((exchange) => ({ ...exchange, path: followed.get(exchange)?.path ?? exchange.path }));
}

interface Played {
  file: string;
  upstream: () => UpstreamOptions;
  /** Lines of the file, so that an empty or cut recording fails. */
  lines: number;
  allowances?: Allowance[];
  together?: (exchange: Exchange) => boolean;
  skip?: (exchange: Exchange) => boolean;
}

const math = (): UpstreamOptions => ({ interpreter: 'v112', module: 'recorded_environments', classes: ['MathEnv', 'OtherEnv'] });
const gsm8k = (): UpstreamOptions => ({
  interpreter: 'ors',
  module: 'gsm8k_server',
  classes: ['GSM8K'],
  folders: [path.join(sdist('ors_sdk-0.1.0'), 'examples')],
});

const orsRepairs: Allowance[] = [
  {
    why: 'an ors-sdk server leaves env_name out; the openreward client needs it',
    applies: ({ path: requested }) => /task(_range)?$/.test(requested),
    normalise: (body) => (body !== null && typeof body === 'object' ? { ...body, env_name: undefined } : body),
  },
  {
    why: 'an ors-sdk server has no /version and refuses toolset_name with a list of validation errors',
    applies: ({ path: requested, body }) => requested.endsWith('/version') || body.includes('toolset_name'),
    status: [200, 400],
  },
];

const played: Played[] = [
  {
    file: 'sdk-test-suite',
    lines: 303,
    upstream: () => ({
      interpreter: 'v112',
      module: 'test_environment',
      classes: ['Foo', 'Bar', 'AsyncBaz', 'LargeEnv', 'EnvWithTaskTools'],
      folders: [path.join(sdist('openreward-0.1.112'), 'tests')],
    }),
  },
  { file: 'sdk-tour', lines: 69, upstream: math },
  {
    file: 'sdk-tour-0.1.167',
    lines: 135,
    upstream: () => ({
      interpreter: 'v167',
      module: 'recorded_environments_167',
      classes: ['MathEnv', 'OtherEnv', 'ConvEnv', 'TermEnv', 'SlowEnv', 'BrokenEnv', 'CtorEnv', 'LateSandboxEnv', 'SandboxEnv'],
    }),
    // The two racing `submit`s and the parallel calls were sent at the same moment; their order is not promised.
    together: ({ seq }) => [37, 42, 43, 60, 121, 122].includes(seq),
  },
  {
    file: 'reference-raw-http',
    lines: 90,
    upstream: () => ({
      interpreter: 'v112',
      module: 'recorded_environments',
      classes: ['RawMathEnv', 'OtherEnv', 'BrokenEnv', 'IndexEnv'],
    }),
    allowances: [
      {
        why: 'a repeated /create_session with a task_id gives that session again',
        applies: ({ path: requested }) => requested === '/create_session',
        anyBody: true,
      },
    ],
  },
  { file: 'skyrl-prepare-tasks', lines: 22, upstream: math },
  { file: 'skyrl-adapter', lines: 10, upstream: math },
  { file: 'sdk-trailing-slash', lines: 11, upstream: math },
  { file: 'ors-client', lines: 42, upstream: gsm8k, allowances: orsRepairs },
  { file: 'ors-client-on-openreward-server', lines: 27, upstream: math },
  { file: 'sdk-on-ors-server', lines: 37, upstream: gsm8k, allowances: orsRepairs },
];

describe('recorded exchanges', () => {
  let palestra: Palestra;
  const upstreams: Upstream[] = [];

  beforeAll(async () => {
    palestra = await startPalestra({ env: { PALESTRA_API_KEY: recordedKey, PALESTRA_ANONYMOUS: '1' } });
  });
  afterAll(async () => {
    await palestra?.stop();
    await Promise.all(upstreams.map((upstream) => upstream.stop()));
  });

  /** Hosts the recorded environments under a name of their own and returns the deployment. */
  async function host(name: string, options: UpstreamOptions): Promise<string> {
    const upstream = await startUpstream(options);
    upstreams.push(upstream);
    return addRemote(palestra, name.replaceAll('.', '-'), upstream.url);
  }

  test.each(played)('$file', async ({ file, upstream, lines, allowances = [], together, skip }) => {
    const exchanges = readRecording(file);
    expect(exchanges).toHaveLength(lines);
    const deployment = await host(file, upstream());
    const addressed = withBarePaths(exchanges).map((exchange) => ({
      ...exchange,
      headers: exchange.path.startsWith('/v1/') ? exchange.headers : { ...exchange.headers, 'x-deployment': deployment },
    }));
    const result = await replay(palestra.url, addressed, { allowances: [...table, ...allowances], together, skip });
    expect(result.differences).toEqual([]);
    expect(result.compared).toBeGreaterThan(lines / 3);
  });

  test('whitespace at the border of a chunk reaches the client whole', async () => {
    const deployment = await host('spaces', math());
    const calls = readRecording('sdk-tour').filter(
      ({ path: requested, body }) => requested === '/create_session' || body.includes('"spaces"'),
    );
    const session = calls[0]!;
    const sid = crypto.randomUUID();
    const headers = { 'x-api-key': recordedKey, 'x-deployment': deployment, 'x-session-id': sid, 'content-type': 'application/json' };
    const create: Exchange = { ...session, path: '/create', headers, body: '{"split": "train", "index": 0}', response: '' };
    const spaces = calls
      .filter(({ path: requested }) => requested.endsWith('/call'))
      .map((call) => ({ ...call, path: '/call', headers, stub: true }));
    const result = await replay(palestra.url, [{ ...create, stub: true }, ...spaces], { allowances: table });
    for (const call of spaces) {
      const { clientText } = fold(result.answers.get(call.seq)!.text);
      const { n } = (JSON.parse(call.body) as { input: { n: number } }).input;
      const output = JSON.parse(clientText) as { output: { blocks: { text: string }[] } };
      expect(output.output.blocks[0]!.text).toBe(' '.repeat(n));
    }
    expect(spaces.length).toBeGreaterThan(5);
  });
});

const refusedAfterFinished = (...lines: number[]): Allowance => ({
  why: 'calls after the first finished are refused, whatever they ask for (since 0.1.160)',
  applies: ({ path: requested, seq }) => requested.endsWith('/call') && lines.includes(seq),
  anyBody: true,
});
const toolsOf112: Allowance = {
  why: 'newer servers say more about their tools',
  applies: ({ path: requested }) => requested.endsWith('tools'),
  normalise: (body) => ({ tools: (body as { tools?: unknown }).tools ?? body }),
};
const noToolsets: Allowance = {
  why: 'the kit has no toolsets: a create that names one is 400 by itself, as an unknown one is in 0.1.167',
  applies: ({ body }) => body.includes('toolset_name'),
  status: 400,
  anyBody: true,
};

describe('recorded exchanges, against the kit’s own server', () => {
  const kit: { file: string; environments: Environment[]; allowances: Allowance[] }[] = [
    { file: 'sdk-tour-0.1.167', environments: environments167, allowances: [version, noToolsets] },
    {
      file: 'reference-raw-http',
      environments: rawEnvironments,
      allowances: [version, noToolsets, toolsOf112, refusedAfterFinished(59, 60, 61, 62, 63, 64, 65)],
    },
    { file: 'ors-client-on-openreward-server', environments: mathEnvironments, allowances: [toolsOf112, refusedAfterFinished(19)] },
    { file: 'skyrl-adapter', environments: mathEnvironments, allowances: [] },
    { file: 'skyrl-prepare-tasks', environments: mathEnvironments, allowances: [toolsOf112] },
    { file: 'sdk-trailing-slash', environments: mathEnvironments, allowances: [toolsOf112] },
  ];
  /** Sessions with a toolset, which the kit refuses to open. */
  const withToolset = (exchanges: Exchange[]) =>
    new Set(exchanges.filter(({ body }) => body.includes('toolset_name')).map(({ headers }) => headers['x-session-id']));

  test.each(kit)('$file', async ({ file, environments, allowances }) => {
    const server = await serve(environments);
    try {
      const entry = played.find((candidate) => candidate.file === file)!;
      const exchanges = withBarePaths(readRecording(file)).filter(({ path: requested }) => !requested.startsWith('/v1/'));
      const refused = withToolset(exchanges);
      const result = await replay(server.url, exchanges, {
        allowances: [...table, ...(entry.allowances ?? []), ...allowances],
        together: entry.together,
        skip: ({ headers, body }) => refused.has(headers['x-session-id']) && !body.includes('toolset_name'),
      });
      expect(result.differences).toEqual([]);
      expect(result.compared).toBeGreaterThan(exchanges.length / 3);
    } finally {
      await server.close();
    }
  });
});
