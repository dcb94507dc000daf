import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { PalestraClient, type Session } from '@palestra/client';
import { defineEnvironment, type RunningServer, serve, tool, z } from '@palestra/environment-kit';
import { eventually } from '../observed.world.ts';
import { startStore, type StoreWorld } from './sealing.world.ts';

/** Verification of rollouts whose messages are in the object store before their sessions have ended. */
const riddle = defineEnvironment({
  name: 'riddle',
  splits: ['train'],
  tasks: () => [{}],
  prompt: () => 'Answer.',
  tools: {
    look: tool({ description: 'Looks', input: z.object({ at: z.string() }), run: ({ at }) => `${at} is empty` }),
    answer: tool({
      description: 'Ends it',
      input: z.object({ value: z.number() }),
      run: ({ value }) => ({ content: [{ type: 'text' as const, text: 'noted', detail: null }], reward: value, finished: true }),
    }),
  },
});

let world: StoreWorld;
let upstream: RunningServer;
let client: PalestraClient;
let session: Session;

beforeAll(async () => {
  world = await startStore('files');
  upstream = await serve([riddle]);
  client = new PalestraClient({ url: world.server.url, apiKey: world.server.apiKey });
  await client.environments.add({ name: 'riddle', url: upstream.url });
});
afterAll(async () => {
  await client?.close();
  await world?.server.close();
  await upstream?.close();
});
/** A session of which one of two calls has been made. */
beforeEach(async () => {
  session = await client.session({ environment: `${world.server.orgName}/riddle`, split: 'train', index: 0 });
  await session.call('look', { at: 'door' });
});

/** Both calls of an episode that names no session, sealed; the second one may not have happened yet. */
async function uploadSealed(): Promise<string> {
  const id = randomUUID();
  const environment = `${world.server.orgName}/riddle`;
  const message = (index: number, type: string, more: object) =>
    world.message(id, index, { timestamp: Date.now(), type, name: undefined, metadata: {}, ...more });
  await world.post([
    world.start(id, { environment, split: 'train', rollout_info: { task_index: 0 } }),
    message(0, 'user_message', { content: 'Answer.' }),
    message(1, 'tool_call', { name: 'look', callId: 'a', content: '{"at": "door"}' }),
    message(2, 'tool_result', { callId: 'a', content: 'door is empty' }),
    message(3, 'tool_call', { name: 'answer', callId: 'b', content: '{"value": 1}' }),
    message(4, 'tool_result', { callId: 'b', content: 'noted', reward: 1, isFinished: true }),
  ]);
  expect(await world.seal()).toMatchObject({ sealed: 1, messages: 5 });
  expect(await world.rowsOf(id)).toBe(0);
  return id;
}

const mark = async (id: string) =>
  (await world.server.database.pool.query('SELECT unverified, verify_at FROM rollout_heads WHERE id = $1', [id])).rows[0];
/** The clock of the database cannot be set: what is asked of it is the age of the last event. */
const age = (id: string, hours: number) =>
  world.server.database.pool.query(
    `UPDATE rollout_heads SET last_at = now() - $2 * interval '1 hour', verify_at = now() - interval '1 second' WHERE id = $1`,
    [id, hours],
  );
/** Until it has been looked at once more. */
const looked = (id: string) =>
  eventually(async () => {
    const { unverified, verify_at } = await mark(id);
    return !unverified || verify_at > new Date() ? { unverified } : null;
  });
const endSession = async () => {
  await session.call('answer', { value: 1 });
  await session.close();
};

test('a sealed rollout is verified when its session is complete', async () => {
  const id = await uploadSealed();
  expect(await looked(id)).toEqual({ unverified: true });
  expect(await world.get(id)).toMatchObject({ verified: null, session: null });
  await endSession();
  const found = await eventually(async () => {
    const view = await world.get(id);
    return view.verified === null ? null : view;
  }, 30_000);
  expect(found).toMatchObject({ verified: 'verified', session: session.sid, reward: 1 });
  expect(found.rules.telemetry).toBe('ledger: the only equal one, confidence 1.00');
  expect(found.latency_ms).toBeGreaterThanOrEqual(0);
  expect(await mark(id)).toMatchObject({ unverified: false });
  expect(await world.rowsOf(id)).toBe(0);
  expect((await world.get(id)).messages).toHaveLength(5);
});

test('a rollout waits a day for an open session', async () => {
  const id = await uploadSealed();
  await age(id, 23.5);
  expect(await looked(id)).toEqual({ unverified: true });
  expect(await world.get(id)).toMatchObject({ verified: null });
  await age(id, 24.5);
  expect(await looked(id)).toEqual({ unverified: false });
  const before = await world.get(id);
  expect(before).toMatchObject({ verified: 'partial', session: session.sid });
  expect(before.rules.telemetry).toContain('call of message 3 (answer) is not recorded');
  // What happens in the session from here on changes nothing.
  await endSession();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect({ ...(await world.get(id)), age_ms: 0 }).toEqual({ ...before, age_ms: 0 });
});
