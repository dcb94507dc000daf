import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { TestServer } from '../../support/server.ts';
import { executions, gates, textEnvironments } from '../../support/text-environments.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/two-replicas.ts';
import { createCaller } from '../../support/callers.ts';

/** Text sessions over one socket: many sessions, answers out of order, and broken sockets. */
let world: TwoReplicas;
let first: TestServer;
let second: TestServer;
let environment: string;

beforeAll(async () => {
  world = await startTwoReplicas('texts', textEnvironments, { bundled: true });
  ({ first, second, environment } = world);
});
afterAll(() => world?.close());

interface Reply {
  id: string | number | null;
  ok: boolean;
  result?: any;
  error?: { status: number; code: string; message: string };
}

async function connect(server = first, key = server.apiKey) {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/text-sessions/ws`, { headers: { 'x-api-key': key } });
  await once(socket, 'open');
  onTestFinished(() => socket.terminate());
  /** In order of arrival. */
  const replies: Reply[] = [];
  const waiting = new Map<Reply['id'], (reply: Reply) => void>();
  socket.on('message', (data) => {
    const reply = JSON.parse(String(data)) as Reply;
    replies.push(reply);
    waiting.get(reply.id)?.(reply);
  });
  let last = 0;
  const ask = (op: string, body: object = {}) => {
    const id = `r${(last += 1)}`;
    const reply = new Promise<Reply>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, op, ...body }));
    return reply;
  };
  const init = async (body: object = {}) => {
    const reply = await ask('init', { environment, variant: 'abacus', split: 'train', index: 0, ...body });
    if (!reply.ok) throw new Error(JSON.stringify(reply));
    return reply.result.id as string;
  };
  return { socket, replies, ask, init };
}
const call = (name: string, input: object = {}) => `<tool_call>${JSON.stringify({ name, arguments: input })}</tool_call>`;
const response = (text: string) => [{ role: 'user', content: `<tool_response>\n${text}\n</tool_response>` }];

describe('refusals', () => {
  test('a wrong key is refused before the upgrade', async () => {
    for (const headers of [{}, { 'x-api-key': 'or_nobody' }]) {
      const socket = new WebSocket(`${first.url.replace('http', 'ws')}/v1/text-sessions/ws`, { headers });
      const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
      expect(answer.statusCode).toBe(401);
    }
  });

  test('an invalid request gets an error, and the socket stays open', async () => {
    const { socket, replies, ask, init } = await connect();
    socket.send('{');
    socket.send('[]');
    socket.send(JSON.stringify({ id: 7, op: 'dance' }));
    socket.send(JSON.stringify({ id: 8, op: 'step', text: 'x' }));
    const sid = await init();
    expect(replies.slice(0, 4).map(({ id, error }) => [id, error?.code])).toEqual([
      [null, 'invalid_json'],
      [null, 'invalid_body'],
      [7, 'invalid_body'],
      [8, 'invalid_body'],
    ]);
    expect(await ask('step', { session: sid, text: 5 })).toMatchObject({ ok: false, error: { status: 422 } });
    expect(await ask('step', { session: randomUUID(), text: 'x' })).toMatchObject({
      ok: false,
      error: { status: 404, code: 'session_not_found' },
    });
    const stranger = await connect(first, (await createCaller(first, 'stranger')).headers['x-api-key']);
    expect(await stranger.ask('metrics', { session: sid })).toMatchObject({ ok: false, error: { code: 'session_not_found' } });
  });

  test('more requests in flight than the socket takes', async () => {
    const { ask, init } = await connect();
    const sid = await init();
    gates.open = () => {};
    const first_ = ask('step', { session: sid, text: call('wait') });
    const others = Array.from({ length: 1_100 }, () => ask('metrics', { session: sid }));
    const refused = await others.at(-1)!;
    expect(refused).toMatchObject({ ok: false, error: { status: 429, code: 'too_many_in_flight' } });
    while (gates.open.toString() === '() => {}') await new Promise((resolve) => setTimeout(resolve, 20));
    gates.open();
    expect(await first_).toMatchObject({ ok: true });
    const all = await Promise.all(others);
    expect(all.filter(({ ok }) => ok)).toHaveLength(1_023);
    expect(await ask('metrics', { session: sid })).toMatchObject({ ok: true, result: { turns: 1 } });
  });
});

describe('sessions of one socket', () => {
  test('are answered out of order, each session in order', async () => {
    const { ask, init, replies } = await connect();
    const [slow, quick] = [await init(), await init()];
    gates.open = () => {};
    const waited = ask('step', { session: slow, text: call('wait') });
    const queued = ask('metrics', { session: slow });
    const counted = await Promise.all([1, 2, 3, 4].map(() => ask('step', { session: quick, text: call('count') })));
    expect(counted.map(({ result }) => [result.turn, result.observations])).toEqual([1, 2, 3, 4].map((n) => [n, response(`count ${n}`)]));
    while (gates.open.toString() === '() => {}') await new Promise((resolve) => setTimeout(resolve, 20));
    gates.open();
    expect((await waited).result).toMatchObject({ turn: 1, observations: response('waited') });
    expect((await queued).result).toEqual({ turns: 1, total_reward: 0, num_rewards: 1 });
    expect(replies.map(({ id }) => id)).toEqual(['r1', 'r2', 'r5', 'r6', 'r7', 'r8', 'r3', 'r4']);
    expect(await ask('close', { session: quick })).toMatchObject({ ok: true, result: { id: quick } });
    expect(await ask('step', { session: quick, text: call('count') })).toMatchObject({ ok: false, error: { status: 410 } });
  });

  test('sixty-four episodes at once', async () => {
    const { ask, init } = await connect();
    const rewards = await Promise.all(
      Array.from({ length: 64 }, async (_, index) => {
        const sid = await init({ session: `many-${index}-${randomUUID()}` });
        for (let turn = 1; turn <= 3; turn += 1) await ask('step', { session: sid, turn, text: call('award', { points: index }) });
        const { result } = await ask('metrics', { session: sid });
        await ask('close', { session: sid });
        return result.total_reward;
      }),
    );
    expect(rewards).toEqual(Array.from({ length: 64 }, (_, index) => index * 3));
  });

  test('survive it: a turn whose answer was lost is answered on another socket without running again', async () => {
    const one = await connect();
    const sid = await one.init();
    gates.open = () => {};
    void one.ask('step', { session: sid, turn: 1, text: call('wait') });
    while (gates.open.toString() === '() => {}') await new Promise((resolve) => setTimeout(resolve, 20));
    one.socket.terminate();
    gates.open();
    const two = await connect();
    expect((await two.ask('step', { session: sid, turn: 1, text: call('wait') })).result).toMatchObject({
      observations: response('waited'),
    });
    const before = executions.count;
    const counted = await two.ask('step', { session: sid, turn: 2, text: call('count') });
    expect((await two.ask('step', { session: sid, turn: 2, text: call('count') })).result).toEqual(counted.result);
    expect(executions.count).toBe(before + 1);
    expect((await first.request('GET', `/v1/text-sessions/${sid}/metrics`)).body).toEqual({ turns: 2, total_reward: 1, num_rewards: 2 });
  });

  test('survive it: a session whose opening was not answered is opened by the same request on another socket', async () => {
    const session = `chosen-${randomUUID()}`;
    let create = () => {};
    gates.create = new Promise((resolve) => (create = resolve));
    const one = await connect();
    void one.ask('init', { environment, variant: 'abacus', split: 'train', index: 0, session });
    await expect.poll(async () => (await first.request('GET', `/v1/sessions/${session}`)).status).toBe(200);
    one.socket.terminate();
    const marked = async () => (await first.database.pool.query('SELECT FROM sessions WHERE create_broken')).rowCount;
    await expect.poll(marked).toBe(1);
    const two = await connect();
    const opened = two.init({ session });
    create();
    expect(await opened).toBe(session);
    expect((await two.ask('step', { session, turn: 1, text: call('count') })).result).toMatchObject({ observations: response('count 1') });
    // It was answered: the request once more is that of another client.
    expect(await two.ask('init', { environment, variant: 'abacus', split: 'train', index: 0, session })).toMatchObject({
      error: { code: 'session_exists' },
    });
  });

  test('live on other processes', async () => {
    const mine = await connect(first);
    const theirs = await connect(second);
    // Sessions of a bundled environment belong to the process that opened them.
    const sid = await mine.init({ environment: 'palestra/echo', variant: null });
    expect(await theirs.ask('step', { session: sid, text: call('echo', { text: 'over there' }) })).toMatchObject({
      ok: true,
      result: { turn: 1, observations: response('over there'), reward: 0.1 },
    });
    expect(await theirs.ask('step', { session: sid, turn: 5, text: 'x' })).toMatchObject({
      ok: false,
      error: { status: 409, code: 'turn_conflict' },
    });
    expect((await theirs.ask('metrics', { session: sid })).result).toMatchObject({ turns: 1 });
    expect(await theirs.ask('close', { session: sid })).toMatchObject({ ok: true });
    expect(await mine.ask('step', { session: sid, text: 'x' })).toMatchObject({ ok: false, error: { status: 410 } });
  });
});
