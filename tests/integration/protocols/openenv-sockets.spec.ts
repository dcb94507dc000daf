import { describe, expect, onTestFinished, test } from 'vitest';
import { Client, until } from './openenv.world.ts';
import { useReplicas } from '../sessions/replicas.world.ts';
import type { Replica } from '../sessions/sessions.world.ts';

/** Sockets of OpenEnv clients, with an environment in this process. */
const replicas = useReplicas();
const BASE = '/openenv/acme/math';

async function connect({ url }: Replica, path = '/ws', key = 'alice'): Promise<Client> {
  const client = await Client.open(url + BASE + path, { 'x-api-key': key });
  onTestFinished(() => client.destroy());
  return client;
}

async function rpc({ url }: Replica, method: string, params: object = {}, key = 'alice'): Promise<any> {
  const answer = await fetch(`${url}${BASE}/mcp`, {
    method: 'POST',
    headers: { 'x-api-key': key },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

const callTool = (name: string, input = {}) => ({ type: 'step', data: { type: 'call_tool', tool_name: name, arguments: input } });
const open = async () =>
  (await replicas.query(`SELECT sid FROM sessions WHERE ended_at IS NULL AND state <> 'reserved'`)).rows.map(({ sid }) => sid as string);
const error = (code: string, message: unknown, extra = {}) => ({ type: 'error', data: { message, code, ...extra } });
const refusal = (...issues: [type: string, loc: unknown[]][]) =>
  expect.objectContaining({
    data: expect.objectContaining({
      message: 'Invalid message',
      code: 'VALIDATION_ERROR',
      errors: issues.map(([type, loc]) =>
        expect.objectContaining({ type, loc, url: expect.stringContaining(`errors.pydantic.dev/`) as string }),
      ),
    }) as object,
  }) as object;

describe('a frame', () => {
  test.each([
    ['{nope', error('INVALID_JSON', 'Invalid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)')],
    ['{"type":"state"} x', error('INVALID_JSON', 'Invalid JSON: Extra data: line 1 column 18 (char 17)')],
    [{ type: 'foo' }, error('UNKNOWN_TYPE', 'Unknown message type: foo')],
    [{ type: 1 }, error('UNKNOWN_TYPE', 'Unknown message type: 1')],
    [{ type: null }, error('UNKNOWN_TYPE', 'Unknown message type: None')],
    [{ nothing: 1 }, error('UNKNOWN_TYPE', 'Unknown message type: ')],
    [{ type: 'reset', extra: 1 }, refusal(['extra_forbidden', ['extra']])],
    [{ type: 'reset', data: null }, refusal(['dict_type', ['data']])],
    [{ type: 'step' }, refusal(['missing', ['data']])],
    [{ type: 'step', data: [1], request_id: '1' }, refusal(['dict_type', ['data']], ['extra_forbidden', ['request_id']])],
    [{ type: 'state', data: {} }, refusal(['extra_forbidden', ['data']])],
    [{ type: 'close', data: {} }, refusal(['extra_forbidden', ['data']])],
    [{ type: 'step', data: { bogus: 1 } }, refusal(['missing', ['tool_name']], ['extra_forbidden', ['bogus']])],
    [{ type: 'step', data: { tool_name: 1, arguments: [] } }, refusal(['string_type', ['tool_name']], ['dict_type', ['arguments']])],
    [{ type: 'step', data: { type: 'other', tool_name: 'echo' } }, refusal(['literal_error', ['type']])],
    [{ type: 'reset', data: { split: 'nope' } }, error('EXECUTION_ERROR', 'Invalid split')],
    [{ type: 'reset', data: { index: 99 } }, error('EXECUTION_ERROR', 'Invalid index')],
    [{ type: 'reset', data: { task_id: 'zzz' } }, error('EXECUTION_ERROR', "There is no task with the id 'zzz'.")],
    [callTool('echo'), error('EXECUTION_ERROR', 'The episode has not begun: send a reset first.')],
  ])('%j gets an error, and the socket stays open', async (frame, reply) => {
    const client = await connect(await replicas.start({}));
    expect(await client.ask(frame)).toEqual(reply);
    expect(await client.state()).toMatchObject({ step_count: 0, session_id: null });
  });

  test.each([
    ['[1]', "'list' object has no attribute 'get'"],
    ['"text"', "'str' object has no attribute 'get'"],
    [Buffer.from('{"type":"state"}'), "'text'"],
  ])('%s ends the socket', async (frame, message) => {
    const client = await connect(await replicas.start({}));
    expect(await client.ask(frame)).toEqual(error('SESSION_ERROR', message));
    expect(await client.ended()).toEqual({ code: 1000, reason: '' });
  });
});

test('a client that does not read its replies is disconnected, and its session ends', async () => {
  const client = await connect(await replicas.start({}));
  await client.reset({});
  client.socket.pause();
  for (let count = 0; count < 20; count += 1) client.send(callTool('spaces', { n: 8_000_000 }));
  await until(async () => (await open()).length === 0);
  client.socket.resume();
  expect(await client.ended()).toMatchObject({ code: 1006 });
});

describe('an episode', () => {
  test('gives rewards, ends, and refuses later steps', async () => {
    const replica = await replicas.start({});
    const client = await connect(replica);
    const opening = await client.reset({ seed: 3, episode_id: 'ep' });
    expect(opening).toMatchObject({ observation: { prompt: '1+1', tools: expect.any(Array) as object }, reward: null, done: false });
    expect(opening.metadata).toEqual({ task: { split: 'train', index: 1 }, session_id: (await open())[0] });
    expect(await client.call('boom', {})).toEqual({
      observation: {
        metadata: {},
        tool_name: 'boom',
        result: null,
        error: { error_type: 'execution_error', message: 'line one\nline two' },
      },
      reward: null,
      done: false,
    });
    expect((await client.call('nope', {})).observation.error).toEqual({ error_type: 'tool_not_found', message: "Unknown tool: 'nope'" });
    expect(await client.call('submit', {})).toMatchObject({ reward: 1, done: true, observation: { result: { data: 'submit done' } } });
    expect(await client.state()).toMatchObject({ episode_id: 'ep', step_count: 3, split: 'train', index: 1 });
    await client.close();
    await until(async () => (await open()).length === 0);
  });

  test('gets one reply per message, in order', async () => {
    const client = await connect(await replicas.start({}));
    for (const message of [
      { type: 'reset', data: {} },
      callTool('slow', { n: 200 }),
      callTool('echo', { text: 'second' }),
      '{bad',
      { type: 'state' },
    ])
      client.send(message);
    const replies = [];
    for (let index = 0; index < 5; index += 1) replies.push(await client.next());
    expect(replies.map(({ type, data }) => [type, data.observation?.result?.data ?? data.code ?? data.step_count ?? null])).toEqual([
      ['observation', null],
      ['observation', 'slow done'],
      ['observation', 'second'],
      ['error', 'INVALID_JSON'],
      ['state', 2],
    ]);
  });

  test('ends with the next reset, and pauses a socket that sends too much', async () => {
    const replica = await replicas.start({});
    const client = await connect(replica);
    await client.reset();
    const [first] = await open();
    await client.reset();
    expect(replica.backend.deleted).toEqual([first]);
    expect(await open()).toHaveLength(1);
    for (let index = 0; index < 500; index += 1) client.send(callTool('echo', { text: String(index) }));
    for (let index = 0; index < 500; index += 1) expect((await client.next()).data.observation.result.data).toBe(String(index));
  });

  test('that another process ended closes its socket', async () => {
    const replica = await replicas.start({ policy: { heartbeatTimeoutMs: 6_000 } });
    const [kept, deleted] = [await connect(replica), await connect(replica)];
    await kept.reset();
    const [keptSid] = await open();
    await deleted.reset();
    const other = (await open()).find((sid) => sid !== keptSid)!;
    await fetch(`${replica.url}/delete`, { method: 'POST', headers: { 'x-api-key': 'alice', 'x-session-id': other } });
    expect(await deleted.ended()).toEqual({ code: 1000, reason: '' });
    // An open socket keeps its session alive; a session without one expires after the heartbeat timeout.
    const silent = (await rpc(replica, 'openenv/session/create')).result.session_id as string;
    await until(async () => !(await open()).includes(silent));
    expect(await kept.call('echo', { text: 'still here' })).toMatchObject({ observation: { error: null } });
  });

  test('whose constructor or setup fails has an error and no observation', async () => {
    const replica = await replicas.start({});
    replica.backend.create = async () => {
      const { PalestraError } = await import('@palestra/protocol');
      throw new PalestraError('environment_failed', { detail: 'ValueError: ctor exploded' });
    };
    const client = await connect(replica);
    expect(await client.ask({ type: 'reset' })).toEqual(
      error('FACTORY_ERROR', "Environment factory 'Math' failed to create instance.", {
        factory_name: 'Math',
        detail: 'ValueError: ctor exploded',
      }),
    );
    expect(await client.ended()).toEqual({ code: 1000, reason: '' });
  });
});

describe('slots', () => {
  test('are waited for and freed when a socket closes, breaks or stays silent', async () => {
    const replica = await replicas.start({ policy: { capacity: 1 }, owned: true });
    const [silent, first, second] = [await connect(replica), await connect(replica), await connect(replica)];
    await first.reset();
    const waiting = second.reset();
    await expect(Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 600, 'waits'))])).resolves.toBe('waits');
    first.destroy();
    expect(await waiting).toMatchObject({ done: false });
    silent.destroy();
    const third = await connect(replica);
    const last = third.reset();
    await second.close();
    await last;
    expect(await open()).toHaveLength(1);
  });

  test('of clients that leave while they wait or open a session are freed', async () => {
    const replica = await replicas.start({ policy: { capacity: 1 }, owned: true });
    const holder = await connect(replica);
    await holder.reset({ task: { construct_ms: 300 } });
    const leaving = await Promise.all([1, 2, 3].map(() => connect(replica)));
    for (const client of leaving) client.send({ type: 'reset', data: { task: { construct_ms: 300 } } });
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const client of leaving) client.destroy();
    holder.destroy();
    const opening = await connect(replica);
    opening.send({ type: 'reset', data: { task: { construct_ms: 300 } } });
    await new Promise((resolve) => setTimeout(resolve, 150));
    opening.destroy();
    const next = await connect(replica);
    expect(await next.reset()).toMatchObject({ done: false });
    await until(async () => (await open()).length === 1);
  });

  test('of a thousand half-open clients are all freed', async () => {
    const replica = await replicas.start({ policy: { capacity: 1_000 }, owned: true });
    const clients: Client[] = [];
    for (let index = 0; index < 20; index += 1) clients.push(...(await Promise.all(Array.from({ length: 50 }, () => connect(replica)))));
    await Promise.all(clients.map((client) => client.reset()));
    expect(await open()).toHaveLength(1_000);
    const late = await connect(replica);
    const waiting = late.reset();
    for (const client of clients) client.destroy();
    await waiting;
    await until(async () => (await open()).length === 1, 60_000);
  }, 120_000);
});

describe('an attached session', () => {
  const session = async (replica: Replica) => (await rpc(replica, 'openenv/session/create')).result.session_id as string;

  test('is one session over HTTP and socket, survives its socket, and ends when it is closed', async () => {
    const replica = await replicas.start({ policy: { capacity: 1 }, owned: true });
    const id = await session(replica);
    const first = await connect(replica, `/ws?session_id=${id}`);
    await first.reset({ episode_id: 'kept', index: 1 });
    expect(await open()).toEqual([id]);
    expect((await rpc(replica, 'tools/list', { session_id: id })).result.tools.map(({ name }: any) => name)).toContain('echo');
    const said = await rpc(replica, 'tools/call', { session_id: id, name: 'echo', arguments: { text: 'over HTTP' } });
    expect(said.result).toMatchObject({ data: 'over HTTP', is_error: false });
    await first.call('echo', { text: 'over the socket' });
    // A call over HTTP is not a step.
    expect(await first.state()).toMatchObject({ episode_id: 'kept', step_count: 1, index: 1 });
    first.destroy();
    const again = await until(async () => (await rpc(replica, 'tools/list', { session_id: id })).result !== undefined).then(() =>
      connect(replica, `/ws?session_id=${id}`),
    );
    expect(await again.state()).toMatchObject({ episode_id: 'kept', step_count: 1, index: 1 });
    expect((await rpc(replica, 'openenv/session/close', { session_id: id })).result).toEqual({
      session_id: id,
      closed: false,
      closing: true,
    });
    expect(await again.call('echo', { text: 'still' })).toMatchObject({ done: false });
    await again.close();
    await until(async () => (await open()).length === 0);
    expect((await rpc(replica, 'tools/list', { session_id: id })).error).toMatchObject({
      code: -32602,
      message: `Unknown session_id: ${id}`,
    });
  });

  test("is refused with the texts of OpenEnv's server", async () => {
    const replica = await replicas.start({});
    const told = async (path: string) => {
      const client = await connect(replica, path);
      const frame = await client.next();
      expect(await client.ended()).toEqual({ code: 1000, reason: '' });
      return frame;
    };
    expect(await told('/ws?session_id=zzz')).toEqual(error('SESSION_ERROR', 'Unknown session_id: zzz'));
    const id = await session(replica);
    const first = await connect(replica, `/ws?session_id=${id}`);
    expect(await told(`/ws?session_id=${id}`)).toEqual(error('SESSION_ERROR', `Session ${id} already has an attached WebSocket`));
    const create = { type: 'mcp', data: { jsonrpc: '2.0', id: 7, method: 'openenv/session/create' } };
    expect((await first.get(create)).result).toEqual({ session_id: id });
    const close = { type: 'mcp', data: { jsonrpc: '2.0', id: 7, method: 'openenv/session/close', params: { session_id: id } } };
    const own = { code: -32600, message: 'Cannot close active WebSocket-managed session via MCP method', data: null };
    expect((await first.get(close)).error).toEqual(own);
    // The session of a plain socket cannot be attached or closed by others.
    const plain = await connect(replica, '/ws?session_id=');
    const { session_id: socketId } = (await plain.get(create)).result;
    expect(await told(`/ws?session_id=${socketId}`)).toEqual(
      error('SESSION_ERROR', `Session ${socketId} already has an attached WebSocket`),
    );
    expect((await rpc(replica, 'openenv/session/close', { session_id: socketId })).error).toEqual(own);
    // A session of another organisation.
    expect((await rpc(replica, 'tools/list', { session_id: id }, 'bob')).error.message).toBe(`Unknown session_id: ${id}`);
  });

  test('waits behind a step whose socket has closed', async () => {
    const replica = await replicas.start({});
    const id = await session(replica);
    const first = await connect(replica, `/ws?session_id=${id}`);
    await first.reset();
    first.send(callTool('slow', { n: 3_000 }));
    await until(() => [...replica.backend.executions.values()].includes(1));
    first.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const second = await connect(replica, `/ws?session_id=${id}`);
    const began = Date.now();
    expect(await second.state()).toMatchObject({ step_count: 1 });
    expect(Date.now() - began).toBeGreaterThan(300);
  });

  test('is served by its owner on any replica, also after a second reset', async () => {
    const [near, far] = [await replicas.start({ owned: true }), await replicas.start({ owned: true })];
    const id = await session(near);
    const socket = await connect(near, `/ws?session_id=${id}`);
    await socket.reset();
    await socket.reset({ index: 1 });
    const said = await rpc(far, 'tools/call', { session_id: id, name: 'echo', arguments: { text: 'from afar' } });
    expect(said.result).toMatchObject({ data: 'from afar' });
    await socket.close();
    const moved = await connect(far, `/ws?session_id=${id}`);
    expect(await moved.state()).toMatchObject({ index: 1 });
    expect((await rpc(far, 'openenv/session/close', { session_id: id })).result).toMatchObject({ closing: true });
    await moved.close();
    await until(async () => (await open()).length === 0);
  });
});
