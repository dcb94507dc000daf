import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { testApiKey } from '../../support/palestra.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { eventsOf, seeded } from './run-reads.world.ts';

/** Stores of versions before migration 0034 counted the partial sums of interrupted rollouts as rewards. */
const RUN = 'before 0034';
const MIGRATION = path.resolve(import.meta.dirname, '../../../apps/api/prisma/migrations/0034_partial_rewards/migration.sql');
let server: TestServer;

beforeAll(async () => {
  server = await startServer({ apiKey: testApiKey });
  const events = seeded(RUN, { steps: 3, tasks: 2 }).flatMap((one, at) => {
    const [start, ...rest] = eventsOf(RUN, { ...one, reward: 0.5 }) as [{ metadata: object }, ...object[]];
    const stop_reason = at % 5 === 0 && one.step < 2 ? 'infra_error' : 'finished';
    return [{ ...start, metadata: { ...start.metadata, stop_reason } }, ...rest];
  });
  const { status } = await server.request('POST', '/v1/rollouts', { body: { events } });
  if (status !== 200) throw new Error(`the upload was answered with ${status}`);
}, 120_000);
afterAll(() => server?.close());

const summary = async () => (await server.request('GET', `/v1/runs/${encodeURIComponent(RUN)}/summary`)).body;
const figures = async () => {
  const { rollouts, scored, kpis, group_size } = await summary();
  return {
    rollouts,
    scored,
    group_size,
    kpis: kpis.filter(({ key }: { key: string }) => /^(reward_mean|avg@n|pass@|effective)/.test(key)),
  };
};

it('the upgrade moves partial sums, and no read shows the old figures', { timeout: 120_000 }, async () => {
  const before = await figures();
  expect(before).toMatchObject({ rollouts: 24, scored: 20, group_size: { n: 4, groups: 6, of: 6 } });
  const { pool } = server.database;
  await pool.query('UPDATE rollouts SET reward = partial_reward, partial_reward = NULL WHERE partial_reward IS NOT NULL');
  // As the earlier version stored them.
  await pool.query('UPDATE rollout_groups SET scored = n, sum = n * 0.5');
  await pool.query(`UPDATE step_rollups SET scored = rollouts, reward_sum = rollouts * 0.5, figures = figures - 'group_classes'`);
  const statements = (await readFile(MIGRATION, 'utf8')).split(/;\n/).filter((one) => one.trim() !== '' && !/^ALTER TABLE/m.test(one));
  expect(statements.length).toBeGreaterThan(4);
  // The background would compute the figures again that the migration has just emptied.
  const held = await pool.connect();
  try {
    await holdLanes(held);
    for (const statement of statements) await pool.query(statement);
    const { rows } = await pool.query('SELECT sum(scored)::int AS scored, sum(reward_sum) AS sum FROM step_rollups WHERE env_id = 0');
    expect(rows).toEqual([{ scored: 8, sum: 4 }]);
  } finally {
    await releaseLanes(held);
    held.release();
  }
  await vi.waitUntil(async () => (await summary()).scored === 20, { timeout: 60_000, interval: 100 });
  expect(await figures()).toEqual(before);
  const { rows: kept } = await pool.query('SELECT count(*)::int AS n FROM rollouts WHERE partial_reward = 0.5 AND reward IS NULL');
  expect(kept).toEqual([{ n: 4 }]);
});
