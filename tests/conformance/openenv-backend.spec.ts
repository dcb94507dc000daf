import { randomUUID } from 'node:crypto';
import { OpenEnvBackend } from '@palestra/openenv/client';
import { type BackendSession, ToolFailedError } from '@palestra/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acted, call, open, pause, rejection, soon } from './support/openenv-play.ts';
import { type OpenEnvServerProcess, startOpenEnv } from './support/openenv-server.ts';
import { startTcpForwarder } from './support/tcp-forwarder.ts';

/** Our client of OpenEnv servers against the real ones. */
describe('an environment of actions with tasks, 0.10.0', () => {
  let server: OpenEnvServerProcess;
  let backend: OpenEnvBackend;
  beforeAll(async () => {
    server = await startOpenEnv({ python: 'PALESTRA_PYTHON_OE_0_10_0', app: 'guess_app' });
    backend = new OpenEnvBackend({ url: server.url });
  });
  afterAll(async () => {
    await backend?.close();
    await server?.stop();
  });

  test('is recognised', async () => {
    expect(await backend.native.shape(soon())).toMatchObject({
      generation: 'E',
      mode: 'simulation',
      toolActions: false,
      metadata: { name: 'guess', version: '2.1.0' },
      schema: { reset_observation: { title: 'GuessReset' } },
    });
    expect(await backend.environments(soon())).toEqual(['guess']);
  });

  test('has its splits and tasks', async () => {
    expect(await backend.splits(null, soon())).toEqual([
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
      { name: 'hard', type: 'validation' },
    ]);
    expect(await backend.numTasks('Guess', 'train', soon())).toBe(4);
    expect(await backend.task(null, 'test', -1, soon())).toEqual({ id: 'test-1', split: 'test', index: 1 });
    expect(await backend.tasks(null, 'hard', soon())).toEqual([{ id: 'hard-0', split: 'hard', index: 0 }]);
    expect(await backend.taskRange(null, 'train', -2, null, soon())).toMatchObject([{ index: 2 }, { index: 3 }]);
    expect(await rejection(backend.numTasks(null, 'nope', soon()))).toMatchObject({ code: 'invalid_split' });
    expect(await rejection(backend.task(null, 'test', 2, soon()))).toMatchObject({ code: 'invalid_index' });
    expect(await rejection(backend.splits('other', soon()))).toMatchObject({ code: 'unknown_variant' });
  });

  test('has its action as the tool `step`', async () => {
    const { tools } = await backend.tools(null, soon());
    expect(tools).toMatchObject([{ name: 'step', input_schema: { type: 'object', title: 'GuessAction', required: ['guess'] } }]);
    expect(Object.keys(tools[0]!.input_schema!['properties'] as object)).toEqual(['guess', 'fault', 'seconds']);
  });

  test('plays a task by split and index to its reward', async () => {
    const session = await open(backend, { kind: 'index', split: 'test', index: 0 });
    expect(await session.prompt(soon())).toEqual([{ type: 'text', detail: null, text: '{"prompt":"Guess a number.","low":1,"high":100}' }]);
    expect(await session.taskTools(soon())).toEqual(await backend.tools(null, soon()));
    const first = await acted(session, { guess: 50 });
    expect(first).toMatchObject({ ok: true, reward: 0, finished: false, metadata: { attempt: 1 } });
    expect(first.observation).toEqual({ hint: 'lower', attempts: 1, extra: null });
    expect(await acted(session, { guess: 4 })).toMatchObject({ reward: -0.1, observation: { hint: 'higher' } });
    const last = await acted(session, { guess: 5 });
    expect(last).toMatchObject({ ok: true, reward: 1, finished: true, metadata: { attempt: 3 } });
    expect(last.text).toContain('"reward":1.0');
    await session.delete(soon());
    await session.delete(soon());
    expect(await rejection(call(session, 'step', { guess: 5 }))).toMatchObject({ code: 'session_deleted' });
  });

  test('plays a listed task at its position', async () => {
    const spec = await backend.task(null, 'train', 3, soon());
    const session = await open(backend, { kind: 'spec', spec: { ...(spec as object) } });
    expect(await acted(session, { guess: 88 })).toMatchObject({ reward: 1, finished: true });
    await session.delete(soon());
  });

  test('refuses an index out of range before opening a session', async () => {
    expect(await rejection(open(backend, { kind: 'index', split: 'test', index: 2 }))).toMatchObject({ code: 'invalid_index' });
    expect(await rejection(open(backend, { kind: 'index', split: 'no', index: 0 }))).toMatchObject({ code: 'invalid_split' });
  });

  test('keywords of the reset: seed, episode id', async () => {
    const session = await open(backend, { kind: 'spec', spec: { seed: 7, episode_id: 'mine', unknown: 1 } });
    const { reply } = await session.native!.exchange({ type: 'state' }, null, soon());
    expect(JSON.parse(reply)).toMatchObject({ type: 'state', data: { episode_id: 'mine', step_count: 0 } });
    await session.delete(soon());
    const refused = open(backend, { kind: 'spec', spec: { split: 'train', index: 'x' } });
    expect(await rejection(refused)).toMatchObject({ code: 'setup_failed', status: 500 });
  });

  test('tells errors of the environment from those of the policy', async () => {
    const session = await open(backend);
    await expect(call(session, 'step', { guess: 0, fault: 'raise' })).rejects.toEqual(new ToolFailedError('kaboom'));
    await expect(call(session, 'step', { guess: 0, fault: 'unserialisable' })).rejects.toBeInstanceOf(ToolFailedError);
    expect(await acted(session, { guess: 0, fault: 'nan' })).toMatchObject({ ok: true, reward: null });
    expect(await acted(session, { guess: 0, fault: 'bool_reward' })).toMatchObject({ ok: true, reward: 1, finished: false });
    const invalid = await call(session, 'step', { guess: 'x', other: 1 });
    expect(invalid).toMatchObject({ ok: false, reason: 'input_validation', reward: null });
    expect(invalid.text).toContain('guess: Input should be a valid integer');
    expect(await call(session, 'nope', {})).toMatchObject({ ok: false, reason: 'not_found' });
    // The server's own validator fails in a way that closes the socket; the episode goes on.
    expect(await call(session, 'step', { guess: 1_001 })).toMatchObject({ ok: false, reason: 'input_validation' });
    expect(await acted(session, { guess: 1 })).toMatchObject({ ok: true, metadata: { attempt: 5 } });
    await session.delete(soon());
  });

  test('accepts an observation of 20 MiB and refuses such an action', async () => {
    const session = await open(backend);
    const { text } = await call(session, 'step', { guess: 0, fault: 'big', seconds: 20 });
    expect(text.length).toBeGreaterThan(20 * 1_024 * 1_024);
    const huge = call(session, 'step', { guess: 0, metadata: { filler: 'x'.repeat(17 * 1_024 * 1_024) } });
    expect(await rejection(huge)).toMatchObject({ code: 'body_too_large' });
    expect(await acted(session, { guess: 1 })).toMatchObject({ ok: true, metadata: { attempt: 2 } });
    await session.delete(soon());
  });

  test('runs calls of a session one after another, in order', async () => {
    const session = await open(backend);
    const results = await Promise.all(Array.from({ length: 20 }, () => acted(session, { guess: 1 })));
    expect(results.map(({ metadata }) => metadata)).toEqual(results.map((_result, index) => ({ attempt: index + 1 })));
    await session.delete(soon());
  });

  test('loses the session on an aborted step', async () => {
    const session = await open(backend);
    const running = session.call({ tool: 'step', input: { guess: 0, fault: 'slow', seconds: 3 }, taskId: '' }, AbortSignal.timeout(300));
    await expect(running).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(await rejection(call(session, 'step', { guess: 1 }))).toMatchObject({ code: 'session_lost' });
    await session.delete(soon());
  });

  test('passes texts of the server through unchanged', async () => {
    const session = await open(backend, { kind: 'none' });
    const exchange = (message: Parameters<NonNullable<BackendSession['native']>['exchange']>[0]) =>
      session.native!.exchange(message, { taskId: randomUUID() }, soon());
    const reset = await exchange({ type: 'reset', data: { split: 'test', index: 0 } });
    expect(reset.reply).toBe(
      '{"type":"observation","data":{"observation":{"metadata":{"task":{"id":"test-0","split":"test","index":0}},"prompt":"Guess a number.","low":1,"high":100},"reward":null,"done":false,"metadata":{"task":{"id":"test-0","split":"test","index":0}}}}',
    );
    const step = await exchange({ type: 'step', data: { guess: 5 } });
    expect(step.reply).toContain('"reward":1.0,"done":true');
    expect(step.result).toMatchObject({ ok: true, reward: 1, finished: true });
    const error = await exchange({ type: 'step', data: { guess: 0, fault: 'raise' } });
    expect(error).toEqual({ reply: '{"type":"error","data":{"message":"kaboom","code":"EXECUTION_ERROR"}}', result: { failed: 'kaboom' } });
    expect(await exchange({ type: 'step', data: { bogus: 1 } })).toMatchObject({ result: { ok: false, reason: 'input_validation' } });
    const rpc = { jsonrpc: '2.0', id: 9, method: 'tools/list', params: { session_id: 'ours' } };
    expect(JSON.parse((await exchange({ type: 'mcp', data: rpc })).reply)).toMatchObject({
      type: 'mcp',
      data: { id: 9, error: { code: -32_603, message: 'Environment does not support MCP' } },
    });
    await session.delete(soon());
  });

  test('forwards stateless routes with their status', async () => {
    const relay = async (method: 'GET' | 'POST', path: string, body: object | null = null) => {
      const bytes = body === null ? null : Buffer.from(JSON.stringify(body));
      const answer = await backend.native.relay({ method, path, body: bytes, contentType: 'application/json' }, soon());
      return { ...answer, body: answer.body.toString() };
    };
    expect(await relay('GET', '/health')).toEqual({ status: 200, contentType: 'application/json', body: '{"status":"healthy"}' });
    expect(await relay('POST', '/reset', { seed: -1 })).toMatchObject({ status: 422 });
    expect(await relay('POST', '/step', { action: { guess: 0, fault: 'raise' } })).toMatchObject({
      status: 500,
      body: 'Internal Server Error',
    });
    expect(await relay('GET', '/guess/splits')).toMatchObject({ status: 200 });
    expect(await relay('GET', '/nothing')).toMatchObject({ status: 404 });
  });

  test('survives a broken connection while no step runs', async () => {
    const forwarder = await startTcpForwarder(server.port);
    const through = new OpenEnvBackend({ url: forwarder.url });
    const session = await open(through, { kind: 'index', split: 'test', index: 0 });
    await acted(session, { guess: 1 });
    forwarder.cut();
    await pause(100);
    expect(await acted(session, { guess: 5 })).toMatchObject({ reward: 1, finished: true, metadata: { attempt: 2 } });
    const running = call(session, 'step', { guess: 0, fault: 'slow', seconds: 2 });
    await pause(300);
    forwarder.cut();
    expect(await rejection(running)).toMatchObject({ code: 'session_lost' });
    await through.close();
    await forwarder.stop();
  });

  test('another process attaches to the session of one that died', async () => {
    const wire = await startTcpForwarder(server.port);
    const first = new OpenEnvBackend({ url: wire.url });
    const task = { kind: 'index', split: 'test', index: 0 } as const;
    const ref = await first.create({ sid: randomUUID(), env: null, task, toolsetName: null, secrets: {} }, soon());
    await acted(first.session(ref), { guess: 1 });
    const prompt = await first.session(ref).prompt(soon());
    await wire.stop();
    const ended = first.close();
    const second = new OpenEnvBackend({ url: server.url });
    const session = second.session(JSON.parse(JSON.stringify(ref)) as Record<string, unknown>);
    expect(await session.prompt(soon())).toEqual(prompt);
    expect(await acted(session, { guess: 5 })).toMatchObject({ reward: 1, metadata: { attempt: 2 } });
    await session.delete(soon());
    // What nobody has opened is closed already, and is not there to be played.
    await second.session(ref).delete(soon());
    expect(await rejection(call(second.session(ref), 'step', { guess: 5 }))).toMatchObject({ code: 'session_lost' });
    await Promise.all([second.close(), ended]);
  });
});
