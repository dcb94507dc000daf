import { systemClock } from '@palestra/kit';
import { OpenEnvServer, OpenEnvError, type Reply, type ClientConnection } from '@palestra/openenv/server';
import { PalestraError } from '@palestra/protocol';
import { SessionEngine } from '@palestra/session';
import { describe, expect, test } from 'vitest';
import { InProcessBackend, OneEnvironmentDirectory, testCaller } from '../../../libs/session/src/in-process.fixture.ts';
import {
  MemoryAdmissionStore,
  MemoryCallLedger,
  MemoryLeases,
  MemorySessionStore,
  openBox,
} from '../../../libs/session/src/memory-ports.fixture.ts';

/** Replies within the deadline while the environment is slow, with short deadlines. */
function world(capacity: number | null = null, deadlineMs = 1_000) {
  const backend = new InProcessBackend();
  const directory = new OneEnvironmentDirectory(backend, { policy: { capacity }, owned: true });
  const store = new MemorySessionStore();
  const problems: unknown[] = [];
  const onBackgroundError = (error: unknown) => problems.push(error);
  const engine = new SessionEngine({
    store,
    ledger: new MemoryCallLedger(store),
    directory,
    replicaId: 'first',
    clock: systemClock,
    leases: new MemoryLeases(new Set()),
    box: openBox,
    observer: {},
    admission: new MemoryAdmissionStore(store),
    queue: { limit: 100, patienceMs: 60_000 },
    onBackgroundError,
  });
  const server = new OpenEnvServer({ engine, directory, onBackgroundError, deadlineMs, slotTimeoutMs: 600 });
  const connection = async () => server.connect(await server.resolve(testCaller('alice'), 'acme', 'math', null), 'socket');
  return { backend, store, server, connection, problems };
}

const call = (tool: string, input: object = {}) =>
  ({ type: 'step', data: { type: 'call_tool', tool_name: tool, arguments: input } }) as const;
const reset = { type: 'reset', data: {} } as const;
const told = (result: Reply | OpenEnvError) =>
  result instanceof OpenEnvError
    ? `${result.code}: ${result.message}`
    : result.kind === 'observation'
      ? JSON.parse(result.observation).result?.data
      : 'other';
const asked = async (connection: ClientConnection, message: Parameters<ClientConnection['send']>[0]) =>
  told(await connection.send(message));

describe('a step that takes longer than the deadline', () => {
  test('gets one error in time, and its result is dropped', async () => {
    const { connection, backend } = world();
    const here = await connection();
    await here.send(reset);
    const answers: unknown[] = [];
    const began = Date.now();
    here.submit(call('slow', { n: 4_000 }), (result) => answers.push(told(result)));
    expect(await asked(here, { type: 'state' })).toBe(
      'EXECUTION_ERROR: No result within 1 s. The message before it still runs; this one was not run.',
    );
    expect(Date.now() - began).toBeLessThan(3_500);
    // It counts as a step, because the environment ran it.
    const state = async () => {
      const reply = await here.send({ type: 'state' });
      return reply instanceof OpenEnvError ? null : (JSON.parse((reply as { text: string }).text) as object);
    };
    await expect.poll(state).toMatchObject({ step_count: 1 });
    expect(answers).toEqual(['EXECUTION_ERROR: No result within 1 s. It goes on; its result is not sent.']);
    expect([...backend.executions.values()]).toEqual([1]);
    expect(await asked(here, call('echo', { text: 'next' }))).toBe('next');
  });

  test('holds the next message until it has ended', async () => {
    const { connection } = world(null, 1_500);
    const here = await connection();
    await here.send(reset);
    const answered = new Promise((resolve) => here.submit(call('slow', { n: 1_800 }), resolve));
    expect(told((await answered) as OpenEnvError)).toContain('EXECUTION_ERROR: No result within 1.5 s.');
    expect(await asked(here, call('echo', { text: 'after it' }))).toBe('after it');
    expect(JSON.parse(((await here.send({ type: 'state' })) as { text: string }).text)).toMatchObject({ step_count: 2 });
  });
});

describe('without a slot', () => {
  test('the first message gets an error in time and leaves no session', async () => {
    const { connection, store, server } = world(1);
    const [holder, second] = [await connection(), await connection()];
    await holder.send(reset);
    const refused = await second.send(reset);
    expect(refused).toMatchObject({
      code: 'CAPACITY_REACHED',
      message: 'Server at capacity: 1/1 sessions active. Cannot accept new connections.',
      extra: { active_sessions: 1, max_sessions: 1 },
      ends: true,
    });
    expect([...store.records.values()].filter(({ endedAt }) => endedAt === null)).toHaveLength(1);
    const context = await server.resolve(testCaller('alice'), 'acme', 'math', null);
    const create = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'openenv/session/create' });
    const never = new AbortController().signal;
    expect(JSON.parse(await server.handleRpc(context, create, never)).error).toEqual({
      code: -32000,
      message: 'Server at capacity: 1/1 sessions active. Cannot accept new connections.',
      data: { active_sessions: 1, max_sessions: 1 },
    });
    holder.end();
    expect(JSON.parse(await server.handleRpc(context, create, never)).result).toEqual({ session_id: expect.any(String) as string });
  });

  test.each([
    ['2/2 sessions active. Cannot', { active_sessions: 2, max_sessions: 2 }],
    [null, {}],
  ])("of the environment's own server, the error has the capacity of that server (%s)", async (said, extra) => {
    const { connection, backend } = world(16);
    const detail = said === null ? undefined : `Server at capacity: ${said} accept new connections.`;
    backend.create = () => Promise.reject(new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 0.02 }));
    const message = detail ?? 'Server at capacity. Cannot accept new connections.';
    expect(await (await connection()).send(reset)).toMatchObject({ code: 'CAPACITY_REACHED', message, extra, ends: true });
  });

  test('frees the slot of an MCP session whose client left before it got the id', async () => {
    const { store, server } = world(1);
    const context = await server.resolve(testCaller('alice'), 'acme', 'math', null);
    const disconnected = new AbortController();
    const create = server.handleRpc(
      context,
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'openenv/session/create' }),
      disconnected.signal,
    );
    disconnected.abort();
    await create;
    await expect.poll(() => [...store.records.values()].filter(({ endedAt }) => endedAt === null).length).toBe(0);
    expect(server.connections.size).toBe(0);
  });
});
