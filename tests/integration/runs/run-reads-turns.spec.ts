import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NORMALISER_VERSION } from '../../../libs/rollouts/src/index.ts';
import { createDatabase, startServer, type TestServer } from '../../support/server.ts';

/** verl counts user_turns + assistant_turns + 1 (docs/reference/metrics.md#test-vectors, vector 13). */
const RUN = 'verl';
const idOf = (name: string) => {
  const hex = createHash('sha256').update(name).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

interface Said {
  type: string;
  callId?: string;
}
const user: Said = { type: 'user_message' };
const thought: Said = { type: 'reasoning' };
const word: Said = { type: 'assistant_message' };
const call = (callId: string): Said => ({ type: 'tool_call', callId });
const result = (callId: string): Said => ({ type: 'tool_result', callId });

function rollout(name: string, step: number, said: readonly (Said | null)[], metadata: object = {}): object[] {
  const id = idOf(name);
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp: 1,
    runName: RUN,
    step,
    environment: 'a/b',
    split: 'train',
    rolloutName: name,
  };
  const messages = said.map((one, index) => ({
    eventType: 'message',
    eventId: idOf(`${name} ${index}`),
    rolloutEventId: id,
    timestamp: 2 + index,
    index,
    content: 'x',
    isFinished: false,
    metadata: {},
    ...(one?.type === 'tool_call' && { name: 'add' }),
    ...(one?.type === 'tool_result' && { reward: 1 }),
    ...one,
  }));
  return [{ ...start, metadata }, ...messages.filter((_message, at) => said[at] !== null)];
}

const threeTurns = [user, thought, word, call('a'), result('a'), call('b'), result('b'), word];
const uploads = [
  // Step 0: vector 13, and two calls of one turn, which two results answer once.
  rollout('three turns', 0, threeTurns),
  rollout('single turn', 0, [user, word]),
  rollout('calls side by side', 0, [user, call('a'), call('b'), result('a'), result('b'), thought, word], { num_turns: 2 }),
  // Step 1: a message is missing. Step 2: more turns than messages. Step 3: no turn of the model.
  rollout('three turns again', 1, threeTurns),
  rollout('with a gap', 1, [user, call('a'), null, word]),
  rollout('turns that were not uploaded', 2, threeTurns, { num_turns: 4 }),
  rollout('silent', 3, []),
];

let database: Awaited<ReturnType<typeof createDatabase>>;
let server: TestServer;
const figures = async (key: string) => {
  const { status, body } = await server.request('GET', `/v1/runs/${RUN}/series?lens=verl&m=${encodeURIComponent(key)}`);
  expect(status).toBe(200);
  expect(body.series[0]).toMatchObject({ lens: 'verl', key, step: [0, 1, 2, 3] });
  return body.series[0].value as (number | null)[];
};

beforeAll(async () => {
  database = await createDatabase();
  server = await startServer({ databaseUrl: database.url });
  const { status } = await server.request('POST', '/v1/rollouts', { body: { events: uploads.flat() } });
  if (status !== 200) throw new Error(`the upload was answered with ${status}`);
});
afterAll(async () => {
  await server?.close();
  await database?.drop();
});

describe('verl’s turns', () => {
  it('count turns of the model, turns of tools and users between them, and one more; null where messages are missing', async () => {
    expect(await figures('num_turns/max')).toEqual([6, null, null, null]);
    expect(await figures('num_turns/min')).toEqual([2, null, null, null]);
    // 6 of three turns, 2 of a single one, 4 of two turns with two calls in the first.
    expect(await figures('num_turns/mean')).toEqual([4, null, null, null]);
  });

  it('give scores wherever turns of the model are known', async () => {
    const scores = await figures('critic/score/mean');
    expect(scores.slice(0, 3)).toEqual([expect.closeTo((2 + 0 + 2) / 3, 10), 1, 2]);
    expect(scores[3]).toBeNull();
  });

  it('are computed for rollouts that an older version normalised', async () => {
    await server.database.pool.query('UPDATE rollouts SET tool_turns = NULL, normaliser = 1');
    await server.database.pool.query(
      `INSERT INTO dirty_steps (run_seq, phase, step) SELECT DISTINCT run_seq, phase, step FROM rollouts ON CONFLICT DO NOTHING`,
    );
    expect(await figures('num_turns/max')).toEqual([null, null, null, null]);
    await server.close();
    const { apiKey } = server;
    server = await startServer({ databaseUrl: database.url });
    Object.assign(server, { apiKey });
    const { request } = server;
    server.request = (method, url, options = {}) =>
      request(method, url, { ...options, headers: { 'x-api-key': apiKey, ...options.headers } });
    await expect.poll(() => figures('num_turns/max'), { timeout: 20_000 }).toEqual([6, null, null, null]);
    const { rows } = await server.database.pool.query('SELECT DISTINCT normaliser FROM rollouts');
    expect(rows).toEqual([{ normaliser: NORMALISER_VERSION }]);
  });
});
