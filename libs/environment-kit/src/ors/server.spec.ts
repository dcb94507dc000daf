import { SseParser } from '@palestra/kit/sse';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineEnvironment, tool } from '../definition.ts';
import { indexed, sample } from '../host/sample.fixture.ts';
import { type RunningServer, serve } from '../serve.ts';

let server: RunningServer;
beforeAll(async () => {
  server = await serve([sample, indexed], { setupWaitMs: 50 });
});
afterAll(() => server.close());

const json = async (response: Response) => ({ status: response.status, body: (await response.json()) as unknown });
const get = (path: string, sid?: string) => fetch(server.url + path, { headers: sid ? { 'X-Session-ID': sid } : {} });
const post = (path: string, body?: unknown, sid?: string, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { ...(sid ? { 'X-Session-ID': sid } : {}), ...headers },
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  });
const events = async (response: Response) => new SseParser().push(await response.text());

describe('ORS over HTTP', () => {
  test('refuses invalid bodies like the reference server', async () => {
    const items = async (path: string, body: unknown, sid?: string) => {
      const answer = await json(await post(path, body, sid));
      return [answer.status, (answer.body as { detail: { type: string; loc: unknown }[] }).detail.map(({ type, loc }) => ({ type, loc }))];
    };
    expect(await items('/sample/task', { split: 'train' })).toEqual([422, [{ type: 'missing', loc: ['body', 'index'] }]]);
    expect(await items('/sample/task', '{bad')).toEqual([422, [{ type: 'json_invalid', loc: ['body', 1] }]]);
    expect(await items('/create', {}, 'x')).toEqual([422, [{ type: 'value_error', loc: ['body'] }]]);
    expect(await items('/create', { split: 'train', index: 0, secrets: {} }, 'x')).toEqual([
      422,
      [{ type: 'extra_forbidden', loc: ['body', 'secrets'] }],
    ]);
  });

  test.each([
    ['GET', '/nope', 404, 'Not Found'],
    ['GET', '/sample/create', 404, 'Not Found'],
    ['GET', '/a/b/c', 404, 'Not Found'],
    ['GET', '/%', 404, 'Not Found'],
    ['POST', '/sample/tools', 405, 'Method Not Allowed'],
    ['GET', '/zzz/tools', 404, "unknown environment 'zzz'"],
    ['GET', '/prompt', 400, 'X-Session-ID header is required'],
    ['POST', '/ping', 400, 'X-Session-ID header is required'],
  ])('%s %s is %i', async (method, path, status, detail) => {
    expect(await json(await fetch(server.url + path, { method }))).toEqual({ status, body: { detail } });
  });

  test('plays an episode on paths with and without the name of the environment', async () => {
    const [sid] = (await events(await post('/create_session', {}))).map(({ data }) => data);
    expect(await json(await post('/create', { split: 'train', index: 1 }, sid))).toEqual({ status: 200, body: { sid } });
    expect(await json(await get('/prompt', sid))).toMatchObject({ body: [{ text: 'two' }] });
    expect(await json(await get('/Sample/task_tools', sid))).toMatchObject({ status: 200 });
    const called = await events(await post('/sample/call', { name: 'submit', input: { answer: 'two' } }, sid));
    expect(called.map(({ event }) => event)).toEqual(['task_id', 'end']);
    expect(JSON.parse(called[1]!.data)).toMatchObject({ ok: true, output: { reward: 1, finished: true } });
    expect(await json(await post('//ping', undefined, sid))).toEqual({ status: 200, body: { status: 'ok' } });
    for (const path of ['/delete', '/delete_session', '/delete']) {
      expect(await json(await post(path, undefined, sid))).toEqual({ status: 200, body: { sid } });
    }
    expect((await get('/prompt', sid)).status).toBe(410);
  });

  test('says what an environment declares about its calls', async () => {
    const look = tool({ description: 'Looks.', idempotent: true, run: () => 'seen' });
    const push = tool({ description: 'Pushes.', run: () => 'moved' });
    const about = { splits: ['train'], tasks: () => [1], prompt: () => 'p', tools: { look, push } };
    const declared = await serve([
      defineEnvironment({ ...about, name: 'stable', deterministic: true }),
      defineEnvironment({ ...about, name: 'loose', tools: { push } }),
    ]);
    const read = async (path: string) => (await fetch(declared.url + path)).json();
    const stable = { deterministic: true, idempotent_tools: ['look'] };
    expect(await Promise.all(['/guarantees', '/stable/guarantees', '/loose/guarantees'].map(read))).toEqual([
      stable,
      stable,
      { deterministic: false, idempotent_tools: [] },
    ]);
    await declared.close();
  });

  test('returns the name of the environment as in the request', async () => {
    expect(await json(await post('/SAMPLE/task', { split: 'train', index: 0 }))).toMatchObject({ body: { env_name: 'SAMPLE' } });
    expect(await json(await post('/task_range', { split: 'train', stop: 1 }))).toEqual({
      status: 200,
      body: { tasks: [{ q: 'one' }], env_name: 'sample' },
    });
  });

  test('responds with 503 and Retry-After during a long setup', async () => {
    await post('/create', { task_spec: { setup: 60_000 } }, 'starting');
    const answer = await get('/prompt', 'starting');
    expect([answer.status, answer.headers.get('x-backend-state'), answer.headers.get('retry-after')]).toEqual([503, 'starting', '2']);
    expect(await answer.json()).toEqual({ detail: 'Environment still starting.' });
    await post('/delete', undefined, 'starting');
  });

  test('resumes a call by its task id for its session only', async () => {
    await post('/create', { task_spec: {} }, 'resumed');
    await post('/create', { task_spec: {} }, 'other');
    const first = await events(await post('/call', { name: 'count', input: {} }, 'resumed'));
    const body = { name: 'count', input: {}, task_id: first[0]!.data };
    expect(await events(await post('/call', body, 'resumed'))).toEqual(first);
    expect(await events(await post('/call', body, 'other'))).toEqual([{ event: 'error', data: 'unknown task_id' }]);
    expect((await events(await post('/call', { name: 'boom', input: {} }, 'resumed')))[1]).toEqual({ event: 'error', data: 'kaboom' });
  });

  test('passes secrets to the environment', async () => {
    const header = Buffer.from(JSON.stringify({ KEY: { value: 'hush', allowed_domains: [] } })).toString('base64');
    await post('/create', { task_spec: {} }, 'secretive', { 'X-Secrets': header });
    const [, end] = await events(await post('/call', { name: 'secret', input: {} }, 'secretive'));
    expect(end!.data).toContain('"hush"');
    expect((await post('/create', { task_spec: {} }, 'bad', { 'X-Secrets': '%%%' })).status).toBe(400);
  });

  test('unsupported group scoring is 404 before the stream, and 410 for an ended session', async () => {
    await post('/create', { split: 'train', index: 0, env_name: 'indexed' }, 'group');
    const body = { candidates: [{ messages: [] }] };
    expect(await json(await post('/indexed/score_group', body, 'group'))).toEqual({
      status: 404,
      body: { detail: "Environment 'indexed' does not implement score_group" },
    });
    await post('/delete', undefined, 'group');
    expect((await post('/indexed/score_group', body, 'group')).status).toBe(410);
  });
});

test('long error texts are cut to what a client reads in one line', async () => {
  const roar = tool({ description: 'Roars', run: () => Promise.reject(new Error('x'.repeat(1_000_000))) });
  const loud = await serve([defineEnvironment({ name: 'loud', splits: ['train'], tasks: () => [1], prompt: () => 'p', tools: { roar } })]);
  const headers = { 'x-session-id': 'loud', 'content-type': 'application/json' };
  await fetch(`${loud.url}/create`, { method: 'POST', headers, body: '{"task_spec":{}}' });
  const answer = await fetch(`${loud.url}/call`, { method: 'POST', headers, body: '{"name":"roar","input":{}}' });
  const text = await answer.text();
  expect(text).toContain('characters left out');
  expect(text.length).toBeLessThan(70_000);
  await loud.close();
});

test('a call with a call id runs once, also if it is repeated', async () => {
  const sid = crypto.randomUUID();
  await post('/create', { task_spec: { q: 'one' }, env_name: 'sample' }, sid);
  const id = 'a'.repeat(32);
  const count = async () =>
    (await events(await post('/sample/call', { name: 'count', input: {} }, sid, { 'x-palestra-call-id': id }))).map(({ data }) => data);
  const [first, second] = await Promise.all([count(), count()]);
  expect(first[0]).toBe(id);
  expect(first.join('')).toContain('"text":"1"');
  expect(second).toEqual(first);
  expect(await count()).toEqual(first);
  expect((await events(await post('/sample/call', { name: 'count', input: {} }, sid))).map(({ data }) => data).join('')).toContain(
    '"text":"2"',
  );
});
