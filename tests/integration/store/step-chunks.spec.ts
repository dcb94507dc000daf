import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { Quarantine } from '../../../apps/api/src/store/quarantine.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { RollupService } from '../../../apps/api/src/store/figures/rollup.service.ts';
import type { RunActivity } from '../../../apps/api/src/store/run-activity.service.ts';
import { expectSameFromNothing, settled } from '../../support/derived-rows.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const STEPS = 40;
let server: TestServer;

/** Two rollouts a step, of one group, with rewards that tell the step. */
const eventsOf = (step: number) =>
  [0, 1].flatMap((sample) => {
    const eventId = randomUUID();
    const metadata = { step, group_id: `g${step}`, n_samples: 2, phase: 'train' };
    const start = {
      eventType: 'rollout',
      eventId,
      timestamp: 1,
      runName: 'chunks',
      environment: `acme/${step % 2}`,
      split: 'train',
      metadata,
    };
    const message = { type: 'tool_result', content: 'x', isFinished: true, reward: (step + sample) / 100, metadata: {} };
    return [start, { eventType: 'message', eventId: randomUUID(), rolloutEventId: eventId, timestamp: 1, index: 0, ...message }];
  });

const sql = async (text: string) => (await server.database.pool.query(text)).rows;
/** With the transaction that wrote each row. */
const groups = () => sql('SELECT step, xmin::text AS writer, to_jsonb(g) AS row FROM rollout_groups g ORDER BY step');
const mark = () => sql('INSERT INTO dirty_steps SELECT DISTINCT run_seq, phase, step FROM rollouts ON CONFLICT DO NOTHING');

beforeAll(async () => {
  server = await startServer();
  const events = Array.from({ length: STEPS }, (_, step) => eventsOf(step)).flat();
  await server.request('POST', '/v1/rollouts', { body: { events } });
  await settled(server.database.pool);
});
afterAll(() => server.close());

it('each of many steps has its own figures, groups and tools', async () => {
  await mark();
  await settled(server.database.pool);
  const rollups = await sql('SELECT step, rollouts, reward_sum FROM step_rollups WHERE env_id = 0 ORDER BY step');
  expect(rollups.map(({ step, rollouts }) => [step, rollouts])).toEqual(Array.from({ length: STEPS }, (_, step) => [step, 2]));
  for (const { step, reward_sum } of rollups) expect(reward_sum).toBeCloseTo((2 * step + 1) / 100, 9);
  const stored = await groups();
  expect(stored.map(({ step }) => step)).toEqual(Array.from({ length: STEPS }, (_, step) => step));
  for (const { step, row } of stored) expect(row.min).toBe(step / 100);
});

it('does not write unchanged groups again, and repairs groups that something else changed, deleted or inserted', async () => {
  const before = await groups();
  await mark();
  await settled(server.database.pool);
  expect(await groups()).toEqual(before);

  await sql('UPDATE rollout_groups SET errors = 1 WHERE step = 3');
  await sql('UPDATE rollout_groups SET min = NULL WHERE step = 4');
  await sql('DELETE FROM rollout_groups WHERE step = 20');
  await sql(`INSERT INTO rollout_groups SELECT run_seq, group_key + 1, phase, step, env_id, task_id, n, n_expected, scored, errors, successes, sum, sum_squares, min, max
    FROM rollout_groups WHERE step = 30`);
  await mark();
  await settled(server.database.pool);
  const after = await groups();
  expect(after.map(({ row }) => row)).toEqual(before.map(({ row }) => row));
  const written = after.filter(({ writer }, at) => writer !== before[at]!.writer).map(({ step }) => step);
  expect(written).toEqual([3, 4, 20]);
  await expectSameFromNothing(server.database.pool);
});

it('rebuilds all other steps of the batch when one step fails, which keeps its figures and its mark', async () => {
  const rollups = () => sql('SELECT step, to_jsonb(s) AS row FROM step_rollups s ORDER BY step, env_id');
  const marks = async () => (await sql('SELECT DISTINCT step FROM dirty_steps')).map(({ step }) => step);
  const service = () =>
    new RollupService(
      server.database,
      { rolled: () => {} } as unknown as RunActivity,
      new Quarantine(new Metrics(), createLogger('silent')),
    );
  const unlucky = STEPS / 2;
  const held = await server.database.pool.connect();
  try {
    await holdLanes(held);
    await sql('UPDATE rollouts SET reward = reward / 2');
    const before = await rollups();
    await sql(`ALTER TABLE step_rollups ADD CONSTRAINT unlucky CHECK (step <> ${unlucky}) NOT VALID`);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await mark();
      const rounds = service();
      await rounds.round();
      expect(await marks()).toEqual([unlucky]);
      // In quarantine: no more work.
      expect(await rounds.round()).toBe(false);
    }
    const after = await rollups();
    expect(after.map(({ step }) => step)).toEqual(before.map(({ step }) => step));
    for (const [at, { step, row }] of after.entries()) {
      if (step === unlucky) expect(row).toEqual(before[at]!.row);
      else expect(row).not.toEqual(before[at]!.row);
    }

    await sql('ALTER TABLE step_rollups DROP CONSTRAINT unlucky');
    await service().round();
    expect(await marks()).toEqual([]);
  } finally {
    await releaseLanes(held);
    held.release();
  }
  const [{ row }] = await sql(`SELECT row_to_json(g) AS row FROM rollout_groups g WHERE step = ${STEPS / 2}`);
  expect(row.min).toBeCloseTo(STEPS / 2 / 200, 9);
});

it('gives a tool the figures of the rollouts that used it, with latency and failure classes from the ledger', async () => {
  const rollouts = await sql('SELECT seq, run_seq, reward FROM rollouts WHERE step = 7 ORDER BY reward');
  const [first, second] = rollouts.map(({ seq }) => seq);
  // The comparison with the ledger would remove calls that no session made.
  const held = await server.database.pool.connect();
  await holdLanes(held);
  await sql('UPDATE rollout_heads SET unverified = false');
  await releaseLanes(held);
  held.release();
  await sql(`INSERT INTO rollout_tools (rollout_seq, run_seq, tool, calls, errors, result_bytes) VALUES
    (${first}, ${rollouts[0].run_seq}, 'look', 4, 1, 8589934592), (${second}, ${rollouts[0].run_seq}, 'look', 4, 1, 8589934592)`);
  await sql(`INSERT INTO rollout_calls (rollout_seq, index, ledger_seq, duration_ms, sid, tool, failure_class) VALUES
    (${first}, 0, 1, 10, 's', 'look', NULL), (${first}, 1, 2, NULL, 's', 'look', 'infrastructure'), (${first}, 2, 3, 10, 's', 'never', NULL),
    (${second}, 0, 4, 30, 's', 'look', 'policy'), (${second}, 1, 5, 20, 's', 'look', 'environment')`);
  await mark();
  await settled(server.database.pool);
  const counts = {
    rollouts: 2,
    calls: 8,
    errors: 2,
    result_bytes: 2 ** 34,
    scored: 2,
    reward_sum: rollouts[0].reward + rollouts[1].reward,
  };
  const ledger = { timed: 4, p50_ms: 20, p95_ms: 29, policy: 1, environment: 1, infrastructure: 1 };
  expect(await sql('SELECT tool, figures FROM tool_rollups WHERE step = 7')).toEqual([{ tool: 'look', figures: { ...counts, ...ledger } }]);
});
