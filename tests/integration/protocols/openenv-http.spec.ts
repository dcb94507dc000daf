import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { Client, until } from './openenv.world.ts';

/** OpenEnv's HTTP routes on environments that do not speak OpenEnv. */
let server: TestServer;
const MATH = '/openenv/palestra/math';
const BENCH = '/openenv/palestra/bench';

beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const get = (path: string) => server.request('GET', path);
const post = (path: string, body: unknown = {}) => server.request('POST', path, { body });
const rpc = async (path: string, body: unknown) => (await post(`${path}/mcp`, body)).body;

describe('addresses', () => {
  test('need a key, except health', async () => {
    for (const path of ['/schema', '/metadata', '/openapi.json', '/state', '/list_environments', '/container/x/health']) {
      expect((await fetch(server.url + MATH + path)).status, path).toBe(401);
    }
    for (const path of ['/reset', '/step', '/mcp', '/math/tasks']) {
      expect((await fetch(server.url + MATH + path, { method: 'POST', body: '{}' })).status, path).toBe(401);
    }
    expect(await (await fetch(`${server.url}${MATH}/health`)).json()).toEqual({ status: 'healthy' });
    expect((await fetch(`${server.url}${MATH}/health`, { headers: { 'x-api-key': 'wrong' } })).status).toBe(401);
    expect((await get('/openenv/palestra/nothing/health')).status).toBe(404);
    expect(await get(`${MATH}/mcp`)).toMatchObject({ status: 405, body: { detail: 'Method Not Allowed' } });
  });

  test('describe tool environments and action environments', async () => {
    const tools = (await get(`${MATH}/schema`)).body;
    expect(tools.action).toMatchObject({ title: 'CallToolAction', required: ['tool_name'] });
    const actions = (await get(`${BENCH}/schema`)).body;
    expect(actions.action).toMatchObject({ title: 'BenchAction', properties: { wait_seconds: { type: 'number' }, metadata: {} } });
    for (const schema of [tools, actions]) expect(Object.keys(schema)).toEqual(['action', 'observation', 'state', 'reset_observation']);
    const { body: page } = await get('/v1/environments/palestra/math');
    expect(page.description).not.toBe('');
    expect((await get(`${MATH}/metadata`)).body).toEqual({
      name: 'math',
      description: page.description,
      readme_content: expect.stringContaining('# math') as string,
      version: '2',
      author: 'palestra',
      documentation_url: null,
    });
    const { info, paths } = (await get(`${MATH}/openapi.json`)).body;
    expect(info).toEqual({ title: 'OpenEnv Environment HTTP API', version: '1.0.0' });
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/reset', '/step', '/state', '/mcp', '/{env_name}/task_range']));
  });
});

describe('stateless play', () => {
  test('uses a new environment for each request', async () => {
    const reset = await post(`${MATH}/reset`, { split: 'test', index: 3, foo: 1 });
    expect(reset.body).toMatchObject({ observation: { prompt: expect.any(String) as string }, reward: null, done: false });
    expect(reset.body.metadata.task).toEqual({ split: 'test', index: 3 });
    const step = await post(`${MATH}/step`, {
      action: { type: 'call_tool', tool_name: 'submit', arguments: { answer: 'x' } },
      timeout_s: 5,
    });
    expect(step.body).toMatchObject({ reward: 0, done: true, metadata: { correct: false } });
    const listed = await post(`${MATH}/step`, { action: { type: 'list_tools' } });
    expect(listed.body).toMatchObject({ observation: { tools: [{ name: 'submit' }] }, metadata: null });
    expect((await get(`${MATH}/state`)).body).toMatchObject({ episode_id: expect.any(String) as string, step_count: 0 });
    const wait = await fetch(`${server.url}${BENCH}/step`, {
      method: 'POST',
      headers: { 'x-api-key': server.apiKey },
      body: '{"action":{"wait_seconds":0}}',
    });
    // Python reads it as a float.
    expect(await wait.text()).toMatch(/"reward":0\.0,"done":false,"metadata":null\}$/);
    const { rows } = await server.database.pool.query(
      `SELECT count(*)::int AS open FROM sessions s JOIN organisations o ON o.id::text = s.org_id WHERE s.ended_at IS NULL AND o.name = $1`,
      [server.orgName],
    );
    expect(rows[0].open).toBe(0);
  });

  test.each([
    ['/reset', { seed: -1 }, { type: 'greater_than_equal', loc: ['body', 'seed'], ctx: { ge: 0 } }],
    ['/reset', { seed: 'x' }, { type: 'int_parsing', loc: ['body', 'seed'] }],
    ['/reset', { episode_id: 'x'.repeat(256) }, { type: 'string_too_long', ctx: { max_length: 255 } }],
    ['/step', {}, { type: 'missing', loc: ['body', 'action'], msg: 'Field required', input: {} }],
    ['/step', { action: {}, timeout_s: 0 }, { type: 'greater_than', loc: ['body', 'timeout_s'], ctx: { gt: 0 } }],
    ['/step', { action: { wait_seconds: 'x' } }, { type: 'float_parsing', loc: ['wait_seconds'], url: expect.any(String) as string }],
    ['/step', { action: { wait_seconds: 0, bogus: 2 } }, { type: 'extra_forbidden', loc: ['bogus'], input: 2 }],
    ['/bench/tasks', {}, { type: 'missing', loc: ['body', 'split'] }],
    ['/bench/tasks', { split: 'train', x: 1 }, { type: 'extra_forbidden', loc: ['body', 'x'], input: 1 }],
  ])('%s refuses %j with 422', async (path, body, issue) => {
    expect(await post(BENCH + path, body)).toMatchObject({ status: 422, body: { detail: [issue] } });
  });
});

test('the Task API answers as OpenEnv does, without env_name where it has none', async () => {
  expect((await get(`${MATH}/list_environments`)).body).toEqual(['math']);
  expect((await get(`${MATH}/MATH/splits`)).body).toContainEqual({ name: 'train', type: 'train' });
  expect((await get(`${MATH}/nope/splits`)).body).toMatchObject({ detail: "unknown environment 'nope'" });
  expect((await post(`${MATH}/math/num_tasks`, { split: 'test' })).body).toEqual({ num_tasks: 200 });
  expect((await post(`${MATH}/math/tasks`, { split: 'test' })).body).toMatchObject({ env_name: 'math', tasks: { length: 200 } });
  expect((await post(`${MATH}/math/task`, { split: 'test', index: '1' })).body).toEqual({
    task: { id: 'test-1', level: 2, seed: 2_000_001 },
  });
  expect(await post(`${MATH}/math/task`, { split: 'test', index: 999 })).toMatchObject({
    status: 400,
    body: { detail: 'Invalid task index' },
  });
  const range = (await post(`${MATH}/math/task_range`, { split: 'test', start: -2 })).body;
  expect(range).toEqual({ tasks: [expect.objectContaining({ id: 'test-198' }), expect.objectContaining({ id: 'test-199' })] });
});

describe('JSON-RPC', () => {
  test.each([
    [{}, -32600, /^Invalid request: 2 validation errors for JsonRpcRequest\njsonrpc\n/],
    ['{nope', -32700, /^Parse error$/],
    ['[1]', -32700, /^Parse error$/],
    [{ jsonrpc: '2.0', method: 'initialize', params: {}, id: 1 }, -32601, /^Method not found: initialize$/],
    [{ jsonrpc: '2.0', method: 'tools/call', params: {}, id: 1 }, -32602, /^Missing 'name' in params$/],
    [{ jsonrpc: '2.0', method: 'tools/list', params: [1], id: 1 }, -32600, /params\n {2}Input should be a valid dictionary/],
    [{ jsonrpc: '2.0', method: 'openenv/session/close', id: 1 }, -32602, /^Invalid params - 'session_id' is required$/],
    [{ jsonrpc: '2.0', method: 'tools/list', params: { session_id: 'zzz' }, id: 1 }, -32602, /^Unknown session_id: zzz$/],
    [{ jsonrpc: '2.0', method: 'tools/call', params: { name: 'nope' }, id: 1 }, -32603, /^Unknown tool: 'nope'$/],
  ])('%j is %i', async (request, code, message) => {
    const answer = await post(`${MATH}/mcp`, request);
    expect(answer).toMatchObject({ status: 200, body: { jsonrpc: '2.0', error: { code, data: null } } });
    expect(answer.body.error.message).toMatch(message);
  });

  test('lists and calls tools without a session; action environments have none', async () => {
    const listed = await rpc(MATH, { jsonrpc: '2.0', method: 'tools/list', id: 'text' });
    expect(listed).toMatchObject({ id: 'text', result: { tools: [{ name: 'submit', inputSchema: { required: ['answer'] } }] } });
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'submit', arguments: { answer: 'x' } }, id: null };
    expect(await rpc(MATH, call)).toMatchObject({
      id: null,
      result: { is_error: false, data: expect.stringContaining('Wrong') as string },
    });
    expect((await rpc(BENCH, { ...call, method: 'tools/list' })).error.message).toBe('Environment does not support MCP');
  });

  test('on a socket plays the default task, without a reset', async () => {
    const client = await Client.open(`${server.url}${MATH}/mcp`, { 'x-api-key': server.apiKey });
    expect(await client.ask('{nope')).toMatchObject({
      id: null,
      error: { code: -32700, message: expect.stringContaining('Parse error: ') as string },
    });
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'submit', arguments: { answer: '1' } }, id: 's' };
    expect(await client.ask(call)).toMatchObject({ id: 's', result: { is_error: false } });
    expect((await client.ask(call)).error.message).toContain('the episode has finished');
    await client.close();
  });
});

test('records a socket with the header, one rollout per reset', async () => {
  const headers = { 'x-api-key': server.apiKey, 'x-palestra-run': 'openenv', 'x-palestra-rollout': 'mine', 'x-palestra-step': '4' };
  const client = await Client.open(`${server.url}${MATH}/ws`, headers);
  for (const index of [1, 2]) {
    await client.reset({ split: 'train', index });
    expect(await client.call('submit', { answer: '1' })).toMatchObject({ done: true });
  }
  await client.close();
  const recorded = async () => (await get('/v1/runs')).body.runs.find(({ name }: { name: string }) => name === 'openenv');
  await until(async () => (await recorded())?.num_finished === 2);
  expect(await recorded()).toMatchObject({ num_rollouts: 2, last_step: 4, environments: ['palestra/math'] });
});
