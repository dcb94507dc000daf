import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SseParser, type SseEvent } from '@palestra/kit/sse';
import { VERSION } from '@palestra/protocol/version';
import { InProcessBackend } from '../../../libs/session/src/in-process.fixture.ts';
import { createDatabase } from '../../support/server.ts';
import { type Replica, startReplica } from './sessions.world.ts';

let backend: InProcessBackend;
let replica: Replica;
let databaseUrl: string;
let database: Awaited<ReturnType<typeof createDatabase>>;

beforeAll(async () => {
  database = await createDatabase();
  databaseUrl = database.url;
  backend = new InProcessBackend();
  replica = await startReplica(databaseUrl, backend);
});
afterAll(async () => {
  await replica.close();
  await database.drop();
});

interface Options {
  key?: string;
  sid?: string;
  headers?: Record<string, string>;
  deployment?: string;
}

async function request(
  method: string,
  path: string,
  body?: unknown,
  { key = 'alice', sid, deployment = 'acme/math', headers }: Options = {},
) {
  const response = await fetch(replica.url + path, {
    method,
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    headers: {
      'content-type': body === undefined ? 'application/octet-stream' : 'application/json',
      ...(key === '' ? {} : { 'x-api-key': key }),
      ...(sid === undefined ? {} : { 'x-session-id': sid }),
      ...(deployment === '' ? {} : { 'x-deployment': deployment }),
      ...headers,
    },
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as unknown };
}

const get = (path: string, options?: Options) => request('GET', path, undefined, options);
const post = (path: string, body?: unknown, options?: Options) => request('POST', path, body, options);
const events = (text: string): SseEvent[] => new SseParser().push(text);
const fold = (text: string) =>
  events(text)
    .filter(({ event }) => event === 'chunk' || event === 'end')
    .map(({ data }) => data)
    .join('');

async function reserve(options?: Options): Promise<string> {
  return events((await post('/create_session', {}, options)).text)[0]!.data;
}
async function opened(body: object = { split: 'train', index: 0 }, options?: Options): Promise<string> {
  const sid = await reserve(options);
  expect((await post('/create', body, { ...options, sid })).text).toBe(JSON.stringify({ sid }));
  return sid;
}

describe('refusals', () => {
  test('a missing or wrong key is 401 on every route but health and version', async () => {
    expect((await get('/health', { key: '' })).json()).toEqual({ status: 'ok' });
    expect((await get('/version', { key: '' })).json()).toEqual({ version: `0.1.167+palestra.${VERSION}`, build_sha: null });
    for (const [method, path] of [
      ['GET', '/list_environments'],
      ['GET', '/tools'],
      ['POST', '/create_session'],
      ['POST', '/mathenv/call'],
      ['POST', '/ping'],
      ['POST', '/create_sandbox'],
    ] as const) {
      expect((await request(method, path, undefined, { key: '' })).status).toBe(401);
      expect((await request(method, path, undefined, { key: 'wrong' })).status).toBe(401);
    }
  });

  test('unknown paths are 404, wrong methods 405', async () => {
    expect(await get('/mathenv/nosuch')).toMatchObject({ status: 404 });
    expect((await get('/mathenv/nosuch')).json()).toMatchObject({ detail: 'Not Found' });
    expect((await get('/ping')).json()).toMatchObject({ detail: 'Method Not Allowed' });
    expect((await get('/ping')).status).toBe(405);
    expect((await post('/doesnotexist/task', { split: 'train', index: 0 })).status).toBe(404);
  });

  test('unknown deployments and variants are refused', async () => {
    const refused = await post('/create_session', {}, { deployment: 'acme/nope' });
    expect(refused).toMatchObject({ status: 404 });
    expect(refused.json()).toMatchObject({ detail: 'Deployment not found.' });
    expect((await get('/nosuch/tools')).json()).toMatchObject({ detail: "unknown environment 'nosuch'" });
  });

  test('invalid bodies', async () => {
    const sid = await reserve();
    const detail = async (path: string, body: unknown) => {
      const answer = await post(path, body, { sid });
      expect(answer.status).toBe(422);
      return (answer.json() as { detail: object[] }).detail;
    };
    const neither = 'Value error, Provide either task_spec or both split and index, not both/neither';
    for (const body of [{}, { split: 'train' }, { task_spec: {}, split: 'train', index: 0 }]) {
      expect(await detail('/create', body)).toEqual([
        { type: 'value_error', loc: ['body'], msg: neither, input: body, ctx: { error: {} } },
      ]);
    }
    expect(await detail('/create', { split: 'train', index: 0, secrets: { K: 'v' } })).toEqual([
      { type: 'extra_forbidden', loc: ['body', 'secrets'], msg: 'Extra inputs are not permitted', input: { K: 'v' } },
    ]);
    expect(await detail('/mathenv/task', { split: 'train' })).toEqual([
      { type: 'missing', loc: ['body', 'index'], msg: 'Field required', input: { split: 'train' } },
    ]);
    expect(await detail('/mathenv/task', '{bad json')).toMatchObject([{ type: 'json_invalid' }]);
    expect(await detail('/mathenv/call', { name: 'submit', input: [1] })).toEqual([
      { type: 'dict_type', loc: ['body', 'input'], msg: 'Input should be a valid dictionary', input: [1] },
    ]);
    expect(await detail('/mathenv/call', { name: 'submit' })).toMatchObject([{ type: 'missing', loc: ['body', 'input'] }]);
    expect(await detail('/mathenv/call', { name: 'submit', input: {}, extra: 1 })).toMatchObject([{ type: 'extra_forbidden' }]);
    const wrongPlace = { messages: [{ role: 'user', blocks: [{ type: 'reasoning', text: 'x' }] }] };
    expect(await detail('/mathenv/score_group', { candidates: [wrongPlace] })).toMatchObject([
      { type: 'value_error', loc: ['body', 'candidates', 0, 'messages', 0] },
    ]);
    expect((await post('/create', { split: 'train', index: 9 }, { sid })).json()).toMatchObject({ detail: 'Invalid index' });
    expect((await post('/create', { split: 'zzz', index: 0 }, { sid })).json()).toMatchObject({ detail: 'Invalid split' });
    const unknown = await post('/create', { split: 'train', index: 0, env_name: 'zzz' }, { sid });
    expect(unknown).toMatchObject({ status: 404 });
    expect(unknown.json()).toMatchObject({ detail: "unknown environment 'zzz'" });
    const badSecrets = await post('/create', { split: 'train', index: 0 }, { sid, headers: { 'x-secrets': 'bm8=' } });
    expect(badSecrets.status).toBe(400);
    expect((await post('/create', { split: 'train', index: 0 }, { sid })).status).toBe(200);
  });

  test('session routes without, with an unknown, and with another tenant’s SID', async () => {
    const sid = await opened();
    for (const [method, path, body] of [
      ['GET', '/mathenv/prompt', undefined],
      ['GET', '/messages', undefined],
      ['GET', '/task_tools', undefined],
      ['POST', '/mathenv/call', { name: 'echo', input: {} }],
      ['POST', '/ping', undefined],
      ['POST', '/run', {}],
    ] as const) {
      expect((await request(method, path, body)).json()).toMatchObject({ detail: 'X-Session-ID header is required' });
      expect((await request(method, path, body, { sid: randomUUID() })).status).toBe(404);
      expect((await request(method, path, body, { sid, key: 'bob' })).status).toBe(404);
    }
    for (const path of ['/delete', '/delete_session']) {
      expect((await post(path)).status).toBe(400);
      const unknown = randomUUID();
      expect(await post(path, undefined, { sid: unknown })).toMatchObject({ status: 200, text: JSON.stringify({ sid: unknown }) });
      expect((await post(path, undefined, { sid, key: 'bob' })).status).toBe(200);
    }
    expect((await post('/ping', undefined, { sid })).json()).toEqual({ status: 'ok' });
    expect((await post('/mathenv/score_group', { candidates: [] }, { sid: randomUUID() })).status).toBe(410);
  });

  test('sandboxes need an engine, and the session of an environment runs no commands', async () => {
    const settings = { image: 'python:3.12-slim', machine_size: '0.5:1' };
    const unknown = await post('/create_sandbox', { ...settings, environment: 'GeneralReasoning/idontexist' }, { deployment: '' });
    expect(unknown.status).toBe(404);
    expect(unknown.text).toContain('GeneralReasoning');
    expect(unknown.text).toContain('idontexist');
    const known = await post('/create_sandbox', { ...settings, environment: 'acme/math' });
    expect(known.json()).toMatchObject({ code: 'hosting_unsupported' });
    const sid = await opened();
    expect((await post('/run', { cmd: 'true' }, { sid })).json()).toMatchObject({ code: 'invalid_request' });
    expect((await post('/stat_file?path=/etc/passwd', undefined, { sid })).json()).toMatchObject({ code: 'invalid_request' });
  });
});

describe('discovery', () => {
  test('bare, by variant in any case, by owner and name, by short name without a header', async () => {
    expect((await get('/list_environments')).json()).toEqual(['mathenv', 'slowenv', 'brokenenv', 'ctorenv']);
    const task = { split: 'train', index: -1 };
    for (const [path, envName, deployment] of [
      ['/task', 'mathenv', 'acme/math'],
      ['/MathEnv/task', 'MathEnv', 'acme/math'],
      ['/acme/math/task', 'mathenv', ''],
      ['/math/task', 'math', ''],
    ] as const) {
      const answer = await post(path, task, { deployment });
      expect(answer.json()).toEqual({ task: { q: '2+2', a: '4' }, env_name: envName });
      expect(answer.headers.get('content-type')).toContain('application/json');
    }
    expect((await get('/splits')).json()).toEqual([{ name: 'train', type: 'train' }]);
    expect((await post('/num_tasks', { split: 'train' })).json()).toEqual({ num_tasks: 2 });
    expect((await post('/task_range', { split: 'train', stop: 1 })).json()).toEqual({ tasks: [{ q: '1+1', a: '2' }], env_name: 'mathenv' });
    expect((await post('/mathenv/tasks', { split: 'train' })).json()).toMatchObject({ env_name: 'mathenv' });
    expect((await post('/tasks', { split: 'indexed' })).status).toBe(400);
    expect((await post('/tasks', { split: 'indexed' }, { sid: await reserve() })).json()).toMatchObject({
      tasks: [{ q: '1+1' }, { q: '2+2' }],
    });
    expect((await get('/mathenv/tools')).json()).toMatchObject({ terminal_tool: null, supports_score_group: true });
  });
});

describe('an episode', () => {
  test('the stream of a reservation, repeated with its task id', async () => {
    const answer = await post('/create_session', {});
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(answer.text).toMatch(/^event: task_id\r\ndata: [0-9a-f-]{36}\r\n\r\nevent: end\r\ndata: \r\n\r\n$/);
    const sid = events(answer.text)[0]!.data;
    expect(await reserve()).not.toBe(sid);
    expect(events((await post('/create_session', { task_id: sid })).text)[0]!.data).toBe(sid);
  });

  test('prompt, messages, tools, calls, scores, deletion, tombstone', async () => {
    const sid = await opened();
    expect((await get('/prompt', { sid })).json()).toEqual([{ text: '1+1', detail: null, type: 'text' }]);
    expect((await get('/mathenv/messages', { sid })).json()).toMatchObject([{ role: 'user' }]);
    expect((await get('/task_tools', { sid })).json()).toHaveProperty('tools');
    const call = await post('/call', { name: 'submit', input: {} }, { sid });
    expect(events(call.text).map(({ event }) => event)).toEqual(['task_id', 'end']);
    expect(JSON.parse(fold(call.text))).toMatchObject({ ok: true, output: { reward: 1, finished: true } });
    const taskId = events(call.text)[0]!.data;
    expect(taskId).toMatch(/^[0-9a-f]{32}$/);
    expect((await post('/call', { name: 'submit', input: {}, task_id: taskId }, { sid })).text).toBe(call.text);
    expect((await post('/call', { name: 'submit', input: {}, task_id: 'f'.repeat(32) }, { sid })).text).toBe(
      'event: error\r\ndata: unknown task_id\r\n\r\n',
    );
    expect((await post('/call', { name: 'boom', input: {} }, { sid })).text).toContain(
      'event: error\r\ndata: line one\r\ndata: line two\r\n\r\n',
    );
    expect(JSON.parse(fold((await post('/call', { name: 'nope', input: {} }, { sid })).text))).toMatchObject({
      ok: false,
      reason: 'not_found',
    });
    const scores = await post('/score_group', { candidates: [{ messages: [] }, { messages: [] }] }, { sid });
    expect(JSON.parse(fold(scores.text))).toEqual({
      scores: [
        { reward: 0, metadata: null },
        { reward: 1, metadata: null },
      ],
    });
    for (const path of ['/delete', '/delete', '/delete_session']) {
      expect((await post(path, undefined, { sid, deployment: '' })).text).toBe(JSON.stringify({ sid }));
    }
    expect((await post('/ping', undefined, { sid })).status).toBe(410);
    expect((await post('/call', { name: 'echo', input: {} }, { sid })).json()).toMatchObject({ detail: 'Session deleted' });
    expect((await post('/score_group', { candidates: [] }, { sid })).status).toBe(410);
    expect((await post('/create', { split: 'train', index: 0 }, { sid })).status).toBe(410);
  });

  test('of two concurrent creates exactly one wins; a SID that the client chose needs no reservation', async () => {
    const sid = randomUUID();
    const answers = await Promise.all([1, 2].map(() => post('/create', { split: 'train', index: 0 }, { sid })));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400]);
    expect(answers.find(({ status }) => status === 400)!.json()).toMatchObject({ detail: 'Session already exists' });
  });

  test('a variant by name, the short name of the deployment as default, numbers and secrets as sent', async () => {
    const sid = await opened({ task_spec: { q: 'x' }, env_name: 'math' });
    expect((await get('/prompt', { sid })).status).toBe(200);
    const secrets = Buffer.from(JSON.stringify({ K: { value: 'hidden', allowed_domains: ['x.example'] } })).toString('base64');
    const reserved = await reserve({ headers: { 'x-secrets': secrets } });
    await post('/create', '{"task_spec":{"n":12345678901234567890,"f":1.0}}', { sid: reserved });
    expect(backend.secrets.get(reserved)).toEqual({ K: { value: 'hidden', allowed_domains: ['x.example'] } });
    const { rows } = await replica.pool.query<{ task: string; row: string }>('SELECT task, s::text AS row FROM sessions s WHERE sid = $1', [
      reserved,
    ]);
    expect(rows[0]!.task).toContain('"spec":{"n":12345678901234567890,"f":1.0}');
    expect(rows[0]!.row).not.toContain('hidden');
  });

  test('a failing constructor and a failing setup', async () => {
    const sid = await reserve();
    const refused = await post('/create', { split: 'train', index: 0, env_name: 'ctorenv' }, { sid });
    expect(refused).toMatchObject({ status: 500 });
    expect(refused.json()).toMatchObject({ detail: 'ValueError: ctor exploded' });
    expect((await post('/create', { split: 'train', index: 0, env_name: 'brokenenv' }, { sid })).status).toBe(200);
    expect((await post('/ping', undefined, { sid })).status).toBe(200);
    for (const answer of [
      await get('/prompt', { sid }),
      await post('/call', { name: 'echo', input: {} }, { sid }),
      await get('/task_tools', { sid }),
    ]) {
      expect(answer.status).toBe(500);
      expect(answer.json()).toMatchObject({ detail: 'ValueError: setup exploded' });
    }
  });

  test('requests are held while setup runs, task tools are not', async () => {
    const sid = await opened({ task_spec: { setup_ms: 3_000 }, env_name: 'slowenv' });
    const answered: string[] = [];
    const noted = async <T>(name: string, answer: Promise<T>): Promise<T> => answer.finally(() => answered.push(name));
    const [prompt, call] = await Promise.all([
      noted('prompt', get('/prompt', { sid })),
      noted('call', post('/call', { name: 'echo', input: { text: 'x' } }, { sid })),
      noted('task tools', get('/task_tools', { sid })),
    ]);
    expect(answered[0]).toBe('task tools');
    expect(prompt.status).toBe(200);
    expect(fold(call.text)).toContain('"ok":true');
  });

  test.each([8_200, 20_000])('%i spaces arrive complete at the official client', async (n) => {
    const sid = await opened();
    const { text } = await post('/call', { name: 'spaces', input: { n } }, { sid });
    const strip = /^[\u0009-\u000d\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
    const joined = events(text)
      .filter(({ event }) => event === 'chunk' || event === 'end')
      .map(({ data }) => data.replace(strip, ''))
      .join('');
    expect((JSON.parse(joined) as { output: { blocks: { text: string }[] } }).output.blocks[0]!.text).toBe(' '.repeat(n));
  });

  test('a 12 s tool sends heartbeats', async () => {
    const sid = await opened();
    const { text } = await post('/call', { name: 'slow', input: { n: 12_000 } }, { sid });
    expect(text).toMatch(/^event: task_id\r\n.*\r\n\r\n: ping - .*\r\n\r\nevent: end\r\n/);
  });

  test('tool names and inputs that PostgreSQL text cannot hold', async () => {
    const sid = await opened();
    const answer = await post('/call', '{"name":"no\\u0000pe","input":{"text":"\\u0000\\ud800"}}', { sid });
    expect(JSON.parse(fold(answer.text))).toMatchObject({ ok: false });
    expect(fold((await post('/call', { name: 'echo', input: { text: '\0' } }, { sid })).text)).toContain('"ok":true');
  });
});

describe('several API processes', () => {
  test('a call resumes on another process and after a restart, and ran once', async () => {
    const second = await startReplica(databaseUrl, backend);
    const sid = await opened();
    const first = await post('/call', { name: 'slow', input: { n: 30 } }, { sid });
    const taskId = events(first.text)[0]!.data;
    const ask = async (url: string) =>
      (
        await fetch(`${url}/call`, {
          method: 'POST',
          headers: { 'x-api-key': 'alice', 'x-session-id': sid, 'content-type': 'application/json' },
          body: JSON.stringify({ name: 'slow', input: { n: 30 }, task_id: taskId }),
        })
      ).text();
    expect(await ask(second.url)).toBe(first.text);
    await second.close();
    const restarted = await startReplica(databaseUrl, backend);
    expect(await ask(restarted.url)).toBe(first.text);
    expect(backend.executions.get(sid)).toBe(1);
    await restarted.close();
  });

  test('an unfinished call of a dead process ends as session_lost, never a second run', async () => {
    const sid = await opened();
    await replica.server.engine.stop(0);
    const taskId = randomUUID().replaceAll('-', '');
    await replica.pool.query(
      `INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, state, started_at) VALUES ($1, $2, 'call', 'echo', '{}', 'gone', 'running', now())`,
      [taskId, sid],
    );
    const { text } = await post('/call', { name: 'echo', input: { text: 'x' }, task_id: taskId }, { sid });
    expect(text).toContain('event: error\r\ndata: Session lost');
    expect(backend.executions.get(sid)).toBeUndefined();
    expect((await post('/call', { name: 'echo', input: {} }, { sid })).json()).toMatchObject({ code: 'session_lost', statusCode: 410 });
  });
});

describe('the ledger', () => {
  test('has each call with its input, times, failure class and outcome', async () => {
    const sid = await opened();
    await post('/call', '{"name":"echo","input":{"text":"hi","n":1.0}}', { sid });
    await post('/call', { name: 'nope', input: {} }, { sid });
    await post('/call', { name: 'submit', input: {} }, { sid });
    await replica.server.engine.stop(100);
    const { rows } = await replica.pool.query(
      'SELECT tool, input, state, ok, reason, reward, finished, failure_class, ended_at >= started_at AS timed FROM session_calls WHERE sid = $1 ORDER BY seq',
      [sid],
    );
    expect(rows).toEqual([
      {
        tool: 'echo',
        input: '{"text":"hi","n":1.0}',
        state: 'result',
        ok: true,
        reason: null,
        reward: null,
        finished: false,
        failure_class: 'ok',
        timed: true,
      },
      {
        tool: 'nope',
        input: '{}',
        state: 'result',
        ok: false,
        reason: 'not_found',
        reward: null,
        finished: false,
        failure_class: 'policy',
        timed: true,
      },
      { tool: 'submit', input: '{}', state: 'result', ok: true, reason: null, reward: 1, finished: true, failure_class: 'ok', timed: true },
    ]);
    const state = await replica.pool.query<{ state: string }>('SELECT state FROM sessions WHERE sid = $1', [sid]);
    expect(state.rows[0]!.state).toBe('finished');
  });
});

test('nothing failed in the background', () => {
  expect(replica.problems).toEqual([]);
});
