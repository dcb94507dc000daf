import type pg from 'pg';
import { expect } from 'vitest';
import { STOP_REASONS } from '@palestra/protocol';
import { INFERENCE_LOCK } from '../../apps/api/src/store/derive/infer.sql.ts';
import { codeOf } from '../../apps/api/src/store/vocabulary-codes.ts';

/** The runs to examine: those of one organisation, or all runs of the database. */
const ofRuns = (org: string | undefined, column = 'run_seq') =>
  org === undefined
    ? `${column} IS NOT NULL`
    : `${column} IN (SELECT u.seq FROM runs u JOIN organisations o ON o.id = u.org_id WHERE o.name = '${org}')`;
const markedIn = (org: string | undefined) => `SELECT EXISTS (SELECT FROM rollout_heads WHERE dirty AND ${ofRuns(org)})
  OR EXISTS (SELECT FROM dirty_steps WHERE ${ofRuns(org)})
  OR EXISTS (SELECT FROM runs WHERE inference_due AND deleted_at IS NULL AND ${ofRuns(org, 'seq')}) AS busy`;
/** Inference clears the mark of its run before it writes the results. */
const INFERRING = `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = ${INFERENCE_LOCK}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS busy`;

/**
 * Resolves when nothing is left to derive in the runs of `org`, or of the whole database. The order matters: an inference in progress
 * without a mark has set its marks by the last check.
 */
export async function settled(pool: pg.Pool, org?: string): Promise<void> {
  const isBusy = async (question: string) => (await pool.query<{ busy: boolean }>(question)).rows[0]!.busy;
  const marked = markedIn(org);
  for (const deadline = Date.now() + 150_000; ;) {
    if (!(await isBusy(marked)) && !(await isBusy(INFERRING)) && !(await isBusy(marked))) return;
    if (Date.now() > deadline) throw new Error('rollouts were not derived within 150 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Pretends that nothing arrived for a minute, so that absent messages count as missing. */
export async function outliveGrace(pool: pg.Pool, org?: string): Promise<void> {
  await settled(pool, org);
  await pool.query(
    `UPDATE rollout_heads SET last_at = last_at - interval '1 minute', gaps_at = gaps_at - interval '1 minute' WHERE ${ofRuns(org)}`,
  );
  const isLeft = async () =>
    (await pool.query<{ left: boolean }>(`SELECT EXISTS (SELECT FROM rollout_heads WHERE gaps_at IS NOT NULL AND ${ofRuns(org)}) AS left`))
      .rows[0]!.left;
  while (await isLeft()) await new Promise((resolve) => setTimeout(resolve, 20));
  await settled(pool, org);
}

/** All derived rows without timestamps. Verdicts come from the ledger. */
async function derived(pool: pg.Pool, ours: string): Promise<Record<string, unknown[]>> {
  const sql = async (text: string) => (await pool.query(text)).rows;
  const columns = `r.seq, r.id, group_key, reward, partial_reward, reward_positive, max_reward, last_reward, reward_reported, bytes, run_seq, env_id, task_id, task_index, step, policy_step,
    sample_idx, turns, tool_turns, messages, calls, call_errors, tokens_out, tokens_tool, gaps, flags, provenance, reward_steps, group_size, phase, stop, failure, normaliser, finished, split`;
  return {
    rollouts: await sql(`SELECT ${columns} FROM rollouts r WHERE ${ours} ORDER BY r.seq`),
    tools: await sql(`SELECT * FROM rollout_tools WHERE ${ours} ORDER BY rollout_seq, tool`),
    steps: await sql(`SELECT (to_jsonb(s) - 'version') AS row FROM step_rollups s WHERE ${ours} ORDER BY run_seq, env_id, phase, step`),
    groups: await sql(`SELECT * FROM rollout_groups WHERE ${ours} ORDER BY run_seq, group_key, phase, step`),
    toolRollups: await sql(`SELECT * FROM tool_rollups WHERE ${ours} ORDER BY run_seq, phase, step, env_id, tool`),
    thresholds: await sql(
      `SELECT * FROM run_environments e WHERE ${ours}
        AND EXISTS (SELECT FROM rollouts r WHERE (r.run_seq, r.env_id) = (e.run_seq, e.env_id)) ORDER BY run_seq, env_id`,
    ),
  };
}

/** Codes of stop reasons that name a failure. */
const FAILED_STOPS = ['env_error', 'infra_error'].map((stop) => codeOf(STOP_REASONS, stop)).join(', ');
const STEP = 'run_seq, env_id, phase, step';
const TOOL = `${STEP}, tool`;
/** Compares summed columns and bytes with plain aggregates of the rows. */
const summedIn = (ours: string) => [
  {
    kept: `SELECT ${TOOL}, ${['rollouts', 'calls', 'errors', 'result_bytes', 'scored'].map((name) => `(figures->>'${name}')::int AS ${name}`).join(', ')}
      FROM tool_rollups WHERE ${ours} ORDER BY ${STEP}, tool COLLATE "C"`,
    plain: `SELECT r.run_seq, r.env_id, phase, COALESCE(step, -1) AS step, tool, count(*)::int AS rollouts, sum(t.calls)::int AS calls, sum(t.errors)::int AS errors,
      sum(t.result_bytes)::int AS result_bytes, count(reward)::int AS scored FROM rollouts r JOIN rollout_tools t ON t.rollout_seq = r.seq
      WHERE r.${ours} GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, tool COLLATE "C"`,
  },
  {
    kept: `SELECT ${STEP}, rollouts, errors, finished, messages::int, provenance & 3 AS weakest,
      ${['calls', 'call_errors', 'gaps', 'mismatches', 'groups'].map((name) => `(figures->>'${name}')::int AS ${name}`).join(', ')}
      FROM step_rollups WHERE env_id > 0 AND ${ours} ORDER BY ${STEP}`,
    plain: `SELECT run_seq, env_id, phase, COALESCE(step, -1) AS step, count(*)::int AS rollouts, (count(*) FILTER (WHERE failure IS NOT NULL OR stop IN (${FAILED_STOPS})))::int AS errors, (count(*) FILTER (WHERE finished))::int AS finished,
      sum(messages)::int AS messages, min(provenance & 3) AS weakest, sum(calls)::int AS calls, sum(call_errors)::int AS call_errors, sum(gaps)::int AS gaps,
      (count(*) FILTER (WHERE flags & 1 = 1))::int AS mismatches, count(DISTINCT group_key)::int AS groups FROM rollouts WHERE ${ours} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
  },
];

async function expectPlainSums(pool: pg.Pool, ours: string): Promise<void> {
  for (const { kept, plain } of summedIn(ours)) expect((await pool.query(kept)).rows).toEqual((await pool.query(plain)).rows);
}

/** Deletes all derived data of the runs of `org`, or of all runs, derives it again and expects the same. */
export async function expectSameFromNothing(pool: pg.Pool, org?: string): Promise<void> {
  const ours = ofRuns(org);
  await outliveGrace(pool, org);
  const before = await derived(pool, ours);
  expect(before.steps!.length).toBeGreaterThan(0);
  await expectPlainSums(pool, ours);
  if (org === undefined)
    await pool.query('TRUNCATE rollouts, rollout_tools, rollout_groups, step_rollups, tool_rollups, dirty_steps, run_environments');
  else
    for (const table of ['rollouts', 'rollout_tools', 'rollout_groups', 'step_rollups', 'tool_rollups', 'dirty_steps', 'run_environments'])
      await pool.query(`DELETE FROM ${table} WHERE ${ours}`);
  await pool.query(`UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE ${ours}`);
  await settled(pool, org);
  const after = await derived(pool, ours);
  for (const key of Object.keys(before)) expect(before[key], key).toEqual(after[key]);
}
