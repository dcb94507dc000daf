import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectSameFromNothing, settled } from '../support/derived-rows.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { randomRuns } from '../support/random-rollouts.ts';
import { randomOf } from '../support/random.ts';
import { openPool } from '../../apps/api/src/platform/database/pool.ts';

/** `kill -9` of the built service while it ingests and derives. */
let palestra: Palestra;
let pool: pg.Pool;
beforeAll(async () => {
  // What is sealed leaves its rows, which are counted here: on a busy machine this takes longer than sealing waits.
  palestra = await startPalestra({ env: { PALESTRA_SEAL_FINISHED_S: '3600', PALESTRA_SEAL_SILENT_S: '3600' } });
  pool = openPool({ connectionString: palestra.databaseUrl!, max: 2 });
  pool.on('error', () => {});
});
afterAll(async () => {
  await pool?.end();
  await palestra?.stop();
});

type Event = Record<string, unknown>;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** As a client that keeps its batch until it is acknowledged. Answers how often it had to ask again. */
async function post(events: readonly Event[]): Promise<number> {
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
  for (let repeats = 0; ; repeats += 1) {
    const answer = await fetch(`${palestra.url}/v1/rollouts`, { method: 'POST', headers, body: JSON.stringify({ events }) }).catch(
      () => null,
    );
    if (answer?.ok) {
      expect(await answer.json()).toMatchObject({ rejected: [] });
      return repeats;
    }
    if (repeats > 2_000) throw new Error(`not acknowledged: ${answer?.status}`);
    await pause(50);
  }
}

test('every acknowledged event is there once, and rollups equal those made from nothing', { timeout: 600_000 }, async () => {
  const seed = Date.now() % 2 ** 31;
  console.info(`rollups and kill -9: seed ${seed}`);
  const random = randomOf(seed);
  const events = randomRuns(seed, 150, true).flatMap(({ rollouts }) => rollouts.flatMap((rollout) => rollout.events));
  const batches: Event[][] = [];
  for (let at = 0; at < events.length; at += 15) batches.push(events.slice(at, at + 15));
  let [repeats, acknowledged] = [0, 0];
  const left = [...batches];
  const client = async () => {
    for (let batch = left.shift(); batch !== undefined; batch = left.shift()) {
      repeats += await post(batch);
      acknowledged += 1;
      await pause(20 * random());
    }
  };
  const clients = Promise.all([client(), client(), client(), client()]);
  for (let kill = 1; kill <= 3; kill += 1) {
    while (acknowledged < (kill * batches.length) / 4) await pause(5);
    await palestra.kill();
    await palestra.restart();
  }
  await clients;
  expect(repeats).toBeGreaterThan(0);
  await settled(pool);
  const messages = events.filter(({ eventType }) => eventType === 'message');
  const { rows } = await pool.query('SELECT event_id::text AS id FROM rollout_messages ORDER BY 1');
  expect(rows.map(({ id }) => id)).toEqual(messages.map(({ eventId }) => String(eventId)).toSorted());
  const { rows: heads } =
    await pool.query(`SELECT h.id FROM rollout_heads h JOIN LATERAL (SELECT count(*)::int AS n, COALESCE(max(m.index), -1) AS top
    FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq) c ON true WHERE h.messages <> c.n OR h.max_index <> c.top`);
  expect(heads).toEqual([]);
  const { rows: runs } = await pool.query('SELECT sum(rollouts)::int AS rollouts FROM step_rollups WHERE env_id = 0');
  expect(runs[0].rollouts).toBe(450);
  await expectSameFromNothing(pool);
});
