import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { type Scope, settle, type Tenants } from './tenants.world.ts';

/**
 * Every documented route × another tenant's key, a revoked key, no key, a key without the scope. What is open to all, what
 * concerns only the caller's own things and what needs no scope stands here by name: a route that is new must be refused, or be named.
 */
let server: TestServer;
let tenants: Tenants;
let routes: [method: string, path: string][];

beforeAll(async () => {
  server = await startServer();
  tenants = await settle(server);
  const document = (await server.request('GET', '/openapi.json')).body;
  routes = Object.entries<Record<string, unknown>>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method): [string, string] => [method.toUpperCase(), path]),
  );
  // Not part of the document: it is the dashboard's own.
  routes.push(['GET', '/v1/stream']);
});
afterAll(async () => {
  await tenants?.close();
  await server?.close();
});

const called = ([method, path]: [string, string]): string => `${method} ${path}`;

/** Answer without a key; about another's private environment they say that there is none. */
const PUBLIC = new Set([
  'GET /health',
  'GET /version',
  'GET /v1/environments',
  'GET /v1/environments/{owner}/{name}',
  'GET /v1/environments/{owner}/{name}/discovery',
  'GET /v1/environments/{owner}/{name}/required-secrets',
  'GET /v1/environments/{owner}/{name}/tasks',
  'GET /v1/environments/{owner}/{name}/variants',
  'GET /v1/environments/{name}/required-secrets',
  'POST /v1/login',
  'POST /v1/logout',
]);
/** Of the caller's own organisation, whoever that is. */
const OWN = new Set([
  'GET /v1/me',
  'GET /v1/namespace/current',
  'GET /v1/keys',
  'POST /v1/keys',
  'GET /v1/runs',
  'GET /v1/stream',
  'GET /v1/sessions',
  'GET /v1/slots',
  'GET /v1/billing/api-usage',
  'GET /v1/github/auth-status',
  'POST /v1/rollouts',
  'GET /metrics',
  'GET /health',
  'GET /version',
  'GET /v1/environments',
  'POST /v1/logout',
]);
/** Whatever the key may do. */
const UNSCOPED = new Set([
  'GET /metrics',
  'GET /v1/me',
  'GET /v1/namespace/current',
  'GET /v1/billing/api-usage',
  'GET /v1/environments/{owner}/{name}/task-difficulty',
]);

/** Say the same of a session that never was: ending is idempotent, and clients take a 404 of score_group for an old server. */
const ALIKE = new Set(['POST /delete', 'POST /delete_session', 'POST /score_group', 'POST /{env}/score_group']);
/** Nothing that could be taken: 501 for whoever has a key. */
const isAbsent = (route: string): boolean => /^\w+ \/v1\/github\/(?!auth-status|environments\/\{id\}\/deployments)/.test(route);

function scopeOf(method: string, path: string): Scope | null {
  if (PUBLIC.has(`${method} ${path}`) || UNSCOPED.has(`${method} ${path}`)) return null;
  if (!path.startsWith('/v1/')) return 'sessions';
  const [, , plane] = path.split('/');
  switch (plane) {
    case 'keys':
      return 'keys';
    case 'rollouts':
    case 'runs':
    case 'stream':
      return 'rollouts';
    case 'sessions':
    case 'slots':
    case 'exports':
      return 'sessions';
    case 'environments':
    case 'files':
      return 'environments';
    case 'github':
      return null;
    default:
      throw new Error(`say which scope ${method} ${path} needs`);
  }
}

function fill(path: string): string {
  const { first } = tenants;
  const ids: Record<string, string> = { keys: first.keyId, runs: first.runId, rollouts: first.rolloutId, exports: first.exportId };
  const values: Record<string, string> = {
    ...first,
    env: 'told',
    path: 'some-file.txt',
    id: ids[path.split('/')[2]!] ?? first.environmentId,
  };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!);
  return path.endsWith('/tasks') && path.startsWith('/v1/environments') ? `${filled}?split=train` : filled;
}

/** Bodies that would do something if the caller were allowed to. */
function bodyOf(path: string): unknown {
  const { first } = tenants;
  const environment = `${first.owner}/${first.name}`;
  const split = 'train';
  const event = { eventType: 'message', eventId: randomUUID(), rolloutEventId: first.rolloutId, timestamp: Date.now(), index: 1 };
  const bodies: Record<string, unknown> = {
    call: { name: 'tell', input: {} },
    create: { split, index: 0 },
    create_sandbox: { environment },
    tasks: path.startsWith('/v1/exports')
      ? { environments: [environment], split, max_tasks: 1, format: 'jsonl', prompt_format: 'text' }
      : { split },
    num_tasks: { split },
    task: { split, index: 0 },
    task_range: { split, start: 0, stop: 1 },
    score_group: { candidates: [] },
    details: { description: 'taken over', isPrivate: false },
    versions: { source: { kind: 'remote', url: 'http://127.0.0.1:9' } },
    environments: { name: 'squatter', namespace: first.owner, description: '', source: { kind: 'remote', url: 'http://127.0.0.1:9' } },
    'upload-urls': { environmentId: first.environmentId, files: [{ fileName: 'taken-over.txt' }] },
    keys: { name: 'one more', scopes: ['rollouts'] },
    login: { key: 'or_nobody_has_this_key' },
    rollouts: { events: [{ ...event, type: 'assistant_message', content: 'taken over', isFinished: false, metadata: {} }] },
    sessions: { environment, split, index: 0 },
  };
  return bodies[path.split('/').at(-1)!] ?? {};
}

interface Refusal {
  status: number;
  code: string | undefined;
  text: string;
}

/** Streams are read as far as they say something within a moment. */
async function ask(method: string, path: string, headers: Record<string, string>): Promise<Refusal> {
  const { first } = tenants;
  const answer = await fetch(server.url + fill(path), {
    method,
    headers: {
      'x-session-id': first.sid,
      'x-deployment': `${first.owner}/${first.name}`,
      ...(method === 'POST' || method === 'PUT' ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    body: method === 'POST' || method === 'PUT' ? JSON.stringify(bodyOf(path)) : null,
    redirect: 'manual',
  });
  const text = await readFor(answer, 1_000);
  const code = /"code":"(\w+)"/.exec(text)?.[1];
  return { status: answer.status, code, text };
}

async function readFor(answer: Response, ms: number): Promise<string> {
  const reader = answer.body?.getReader();
  if (!reader) return '';
  const decoder = new TextDecoder();
  let text = '';
  const timer = setTimeout(() => void reader.cancel(), ms);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  clearTimeout(timer);
  return text;
}

/** All that `judge` finds wrong, so that one run names every route. */
async function problemsOf(
  headersOf: (method: string, path: string) => Record<string, string> | null,
  judge: (route: string, refusal: Refusal, path: string) => string | null,
): Promise<string[]> {
  const problems: string[] = [];
  for (const route of routes) {
    const [method, path] = route;
    const headers = headersOf(method, path);
    if (headers === null) continue;
    const refusal = await ask(method, path, headers);
    const problem = refusal.text.includes(tenants.first.canary) ? 'leaks' : judge(called(route), refusal, path);
    if (problem !== null) problems.push(`${called(route)}: ${problem} (${refusal.status} ${refusal.code ?? refusal.text.slice(0, 80)})`);
  }
  return problems;
}

const unless = (right: boolean, problem: string): string | null => (right ? null : problem);

describe('every route', () => {
  test('is there: the lists name no route that the document has not', () => {
    const known = new Set(routes.map(called));
    expect(known.size).toBeGreaterThan(70);
    expect([...PUBLIC, ...OWN, ...UNSCOPED].filter((route) => !known.has(route))).toEqual([]);
  });

  test('refuses who brings no key, unless it is public', async () => {
    const problems = await problemsOf(
      () => ({}),
      (route, { status, code }) =>
        PUBLIC.has(route) ? unless(status < 500, 'fails') : unless(status === 401 && code === 'unauthorized', 'is open to all'),
    );
    expect(problems).toEqual([]);
  });

  test('refuses a revoked key, unless it is public', async () => {
    const problems = await problemsOf(
      () => ({ 'x-api-key': tenants.revokedKey }),
      (route, { status, code }) => unless((status === 401 && code === 'key_revoked') || (PUBLIC.has(route) && status < 500), 'takes it'),
    );
    expect(problems).toEqual([]);
  });

  test('refuses a key without its scope', async () => {
    const problems = await problemsOf(
      (method, path) => {
        const scope = scopeOf(method, path);
        return scope && { 'x-api-key': tenants.without(scope) };
      },
      (_, { status, code }) => unless(status === 403 && code === 'scope_missing', 'takes it'),
    );
    expect(problems).toEqual([]);
  });

  test('knows nothing of another tenant’s things', async () => {
    const problems = await problemsOf(
      () => ({ 'x-api-key': tenants.foreignKey }),
      (route, { status, code }) => {
        if (OWN.has(route)) return unless(status === 200, 'does not answer');
        if (isAbsent(route)) return unless(status === 501 && code === 'not_available', 'is there');
        return ALIKE.has(route) ? null : unless([401, 403, 404].includes(status), 'takes it');
      },
    );
    expect(problems).toEqual([]);
  });

  test('of the session plane knows no session of another tenant, whatever environment the request names', async () => {
    const aboutSessions = /\/(call|create|delete|delete_session|messages|ping|prompt|score_group|task_tools)$/;
    const problems = await problemsOf(
      (_, path) =>
        path.startsWith('/v1/') || !aboutSessions.test(path)
          ? null
          : { 'x-api-key': tenants.foreignKey, 'x-deployment': tenants.foreignEnvironment },
      (route, { status, code }) => {
        if (ALIKE.has(route)) return null;
        // A SID is 122 random bits that its client chose: that it is taken is no news for whoever knows it.
        if (route === 'POST /create') return unless(status === 400 && code === 'session_exists', 'takes it');
        return unless([403, 404].includes(status), 'takes it');
      },
    );
    expect(problems).toEqual([]);
  });

  test.each([...ALIKE])('%s: another tenant’s session is as one that never was', async (route) => {
    const [method, path] = route.split(' ') as [string, string];
    const headers = { 'x-api-key': tenants.foreignKey, 'x-deployment': tenants.foreignEnvironment };
    const [taken, never] = [tenants.first.sid, randomUUID()];
    const answerOf = async (sid: string) => {
      const { status, text } = await ask(method, path, { ...headers, 'x-session-id': sid });
      return { status, text: text.replaceAll(sid, 'the SID') };
    };
    expect(await answerOf(taken)).toEqual(await answerOf(never));
  });

  test('left everything as it was, and shows it to its owner', async () => {
    const { first } = tenants;
    const get = (path: string, headers = {}) => server.request('GET', path, { headers });
    const headers = { 'x-session-id': first.sid, 'x-deployment': `${first.owner}/${first.name}` };
    expect(await get(`/v1/sessions/${first.sid}`)).toMatchObject({ status: 200, body: { state: 'ready', live: true } });
    expect((await get(`/v1/sessions/${first.sid}/calls`)).body.calls).toHaveLength(1);
    expect((await get(`/v1/rollouts/${first.rolloutId}`)).body.messages).toHaveLength(1);
    expect((await get('/v1/keys')).body.keys.find(({ id }: { id: string }) => id === first.keyId).revoked_at).toBeNull();
    expect(JSON.stringify((await get('/v1/environments')).body)).not.toContain('squatter');
    const shown = [
      ['/prompt', headers],
      [`/v1/environments/${first.owner}/${first.name}`],
      [`/v1/environments/${first.owner}/${first.name}/tasks?split=train`],
      [`/v1/sessions/${first.sid}/calls/${first.taskId}`],
      ['/v1/runs'],
      [`/v1/rollouts/${first.rolloutId}`],
      ['/v1/keys'],
      [`/v1/exports/${first.exportId}/file`],
      [`/v1/files/${first.environmentId}`],
    ] as const;
    for (const [path, more] of shown) expect(JSON.stringify((await get(path, more)).body), path).toContain(first.canary);
  });
});
