import { randomUUID } from 'node:crypto';
import { OpenEnvBackend } from '@palestra/openenv/client';
import type { JsonObject } from '@palestra/protocol';
import type { OpenEnvMessage } from '@palestra/openenv/server';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { full } from '../support/full.ts';
import { call, open, openWhenFree, pause, rejection, soon, textsOf } from './support/openenv-play.ts';
import { type OpenEnvServerProcess, startOpenEnv } from './support/openenv-server.ts';

/** Our client of OpenEnv servers against an environment with tools, in both modes of the newest server. */
describe.each(['simulation', 'production'] as const)('tools, %s', (mode) => {
  let server: OpenEnvServerProcess;
  let backend: OpenEnvBackend;
  beforeAll(async () => {
    const env = { OPENENV_MODE: mode, FIXTURE_SESSION_TIMEOUT: '4', MAX_CONCURRENT_ENVS: '3' };
    server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'tools_app', env });
    backend = new OpenEnvBackend({ url: server.url });
  });
  afterAll(async () => {
    await backend?.close();
    await server?.stop();
  });

  const rpc = async (method: string, params: JsonObject) => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    const answer = await backend.native.relay({ method: 'POST', path: '/mcp', body, contentType: 'application/json' }, soon());
    return JSON.parse(answer.body.toString()) as { result?: JsonObject; error?: { message: string } };
  };

  test('is recognised', async () => {
    expect(await backend.native.shape(soon())).toMatchObject({ generation: 'E', mode, toolActions: true });
    expect(await backend.splits(null, soon())).toEqual([{ name: 'train', type: 'train' }]);
    const reset = await backend.native.relay({ method: 'POST', path: '/reset', body: null, contentType: null }, soon());
    expect(reset.status).toBe(mode === 'production' ? 404 : 200);
  });

  test('plays to the reward', async () => {
    const session = await open(backend, { kind: 'index', split: 'train', index: 0 });
    expect(await session.prompt(soon())).toEqual([{ type: 'text', detail: null, text: 'What is 6 times 7?' }]);
    const tools = await session.taskTools(soon());
    expect(tools.tools.map(({ name }) => name)).toEqual(['add', 'shout', 'slow', 'fail', 'submit']);
    expect(tools.tools[0]).toEqual({
      name: 'add',
      description: 'Add two integers.',
      input_schema: {
        type: 'object',
        additionalProperties: false,
        required: ['a', 'b'],
        properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      },
    });
    expect(await backend.tools(null, soon())).toEqual(tools);
    const added = await call(session, 'add', { a: 1, b: 2 });
    expect(JSON.parse(added.text)).toEqual({
      ok: true,
      output: {
        blocks: [{ text: '{"sum":3}', detail: null, type: 'text' }],
        metadata: { structured_content: { sum: 3 } },
        reward: null,
        finished: false,
      },
    });
    expect(textsOf(await call(session, 'shout', { text: 'hi' }))).toEqual(['HI']);
    expect(textsOf(await call(session, 'fail'))[0]).toContain('kaboom');
    const missing = await call(session, 'nope');
    expect(missing).toMatchObject({ ok: false, reason: 'not_found' });
    expect(missing.text).toContain("'nope' is not a valid tool");
    const last = await call(session, 'submit', { answer: '42' });
    expect(last).toMatchObject({ ok: true, reward: 1, finished: true });
    await session.delete(soon());
  });

  test("routes JSON-RPC messages to their session by the client's id", async () => {
    const session = await open(backend, { kind: 'none' });
    const exchange = (message: OpenEnvMessage) => session.native!.exchange(message, { taskId: randomUUID() }, soon());
    const request = {
      jsonrpc: '2.0',
      id: 'x',
      method: 'tools/call',
      params: { name: 'submit', arguments: { answer: '42' }, session_id: 'ours' },
    };
    const called = await exchange({ type: 'mcp', data: request });
    expect(called.reply).toMatch(
      /^\{"type":"mcp","data":\{"jsonrpc":"2.0","id":"x","result":\{"content":\[\{"type":"text","text":"submitted"/,
    );
    // It never was a step; the next one meets the outcome that it left.
    expect(called.result).toMatchObject({ ok: true, reward: null, finished: false });
    expect((await exchange({ type: 'state' })).reply).toContain('"step_count":0');
    const step = await exchange({ type: 'step', data: { type: 'call_tool', tool_name: 'add', arguments: { a: 1, b: 1 } } });
    expect(step.result).toMatchObject({ reward: 1, finished: true });
    const unknown = await exchange({ type: 'mcp', data: { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'nope' } } });
    expect(unknown.reply).toContain('-32603');
    expect(unknown.result).toMatchObject({ ok: false, reason: 'not_found' });
    const none = await exchange({ type: 'mcp', data: { jsonrpc: '2.0', id: 6, method: 'initialize' } });
    expect(none.reply).toContain('"code":-32601');
    await session.delete(soon());
  });

  // The reaper is the same in both modes, and the test waits for it.
  test.each(mode === 'simulation' || full ? [mode] : [])('keeps quiet sessions alive on the server, %s', async () => {
    const session = await open(backend, { kind: 'index', split: 'train', index: 0 });
    await call(session, 'add', { a: 1, b: 1 });
    await pause(11_000);
    expect(await call(session, 'submit', { answer: '42' })).toMatchObject({ reward: 1 });
    await session.delete(soon());
  });

  test('frees every slot of ended, failed and aborted sessions', async () => {
    const all = await Promise.all([openWhenFree(backend), openWhenFree(backend), openWhenFree(backend)]);
    expect(await rejection(open(backend))).toMatchObject({ code: 'capacity_exhausted', detail: expect.stringContaining('3/3') });
    const slow = all[0]!.call({ tool: 'slow', input: { seconds: 2 }, taskId: '' }, AbortSignal.timeout(200));
    await expect(slow).rejects.toMatchObject({ name: 'TimeoutError' });
    await all[1]!.delete(soon());
    const cancelled = new AbortController();
    const leaving = backend.create(
      { sid: randomUUID(), env: null, task: { kind: 'none' }, toolsetName: null, secrets: {} },
      cancelled.signal,
    );
    await pause(5);
    cancelled.abort();
    await leaving.catch(() => {});
    await all[2]!.delete(soon());
    const again = await Promise.all([openWhenFree(backend), openWhenFree(backend), openWhenFree(backend)]);
    await Promise.all(again.map((session) => session.delete(soon())));
    // An unknown id is what a closed one is.
    expect((await rpc('openenv/session/close', { session_id: 'zzz' })).error?.message).toContain('Unknown session_id');
  });
});

test('an environment whose constructor fails', async () => {
  const server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'broken_app' });
  onTestFinished(() => server.stop());
  const backend = new OpenEnvBackend({ url: server.url });
  expect(await backend.native.shape(soon())).toMatchObject({ generation: 'E', metadata: { name: 'broken' } });
  const detail = "Environment factory 'BrokenEnvironment' failed to create instance.";
  expect(await rejection(open(backend))).toMatchObject({ code: 'environment_failed', detail });
  expect(await rejection(open(backend, { kind: 'none' }))).toMatchObject({ code: 'environment_failed', detail });
  await backend.close();
});

test('reports a dead server, an unknown address and a server that does not speak OpenEnv', async () => {
  const server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'bench_app' });
  const backend = new OpenEnvBackend({ url: server.url });
  const [idle, busy] = [await open(backend), await open(backend)];
  const running = rejection(call(busy, 'step', { wait_seconds: 20 }));
  await pause(300);
  await server.stop();
  expect(await running).toMatchObject({ code: 'session_lost' });
  // Nothing was sent, and its episode could still be there for all we know.
  expect(await rejection(call(idle, 'step', {}))).toMatchObject({ code: 'backend_unreachable' });
  const back = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'bench_app', port: server.port });
  expect(await rejection(call(idle, 'step', {}))).toMatchObject({ code: 'session_lost' });
  expect(await call(await open(backend), 'step', {})).toMatchObject({ ok: true });
  await backend.close();
  await back.stop();
  const nowhere = new OpenEnvBackend({ url: server.url });
  expect(await rejection(nowhere.environments(soon()))).toMatchObject({ code: 'backend_unreachable' });
  await nowhere.close();
});

test('plays on a server of several processes', async () => {
  const env = { MAX_CONCURRENT_ENVS: '40' };
  const server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'bench_app', workers: 3, env });
  onTestFinished(() => server.stop());
  const backend = new OpenEnvBackend({ url: server.url });
  // More than one process has slots for, all told: none may be kept by a session that ended.
  const processes = new Set<string>();
  // Which process takes a connection is the kernel's choice, and all of them have to have started.
  for (let round = 0; round < 5 || (processes.size < 2 && round < 30); round += 1) {
    const sessions = await Promise.all(Array.from({ length: 30 }, () => openWhenFree(backend)));
    const results = await Promise.all(sessions.map((session) => call(session, 'step', {})));
    expect(results.every(({ ok }) => ok)).toBe(true);
    for (const result of results) processes.add(/"pid":(\d+)/.exec(textsOf(result)[0]!)![1]!);
    await Promise.all(sessions.map((session) => session.delete(soon())));
  }
  expect(processes.size).toBeGreaterThan(1);
  await backend.close();
});
