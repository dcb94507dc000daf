import type pg from 'pg';
import { expect } from 'vitest';
import { INFERENCE_LOCK } from '../../apps/api/src/rollouts/derive/infer.sql.ts';

const MARKED = `SELECT EXISTS (SELECT FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL) OR EXISTS (SELECT FROM dirty_steps)
  OR EXISTS (SELECT FROM runs WHERE inference_due AND deleted_at IS NULL) AS busy`;
/** Inference takes the mark of its run off before it writes what follows from it. */
const INFERRING = `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = ${INFERENCE_LOCK}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS busy`;

/** When nothing is left to derive. In this order: what was being inferred without a mark has left its own marks at the last look. */
export async function settled(pool: pg.Pool): Promise<void> {
  const isBusy = async (question: string) => (await pool.query<{ busy: boolean }>(question)).rows[0]!.busy;
  for (const deadline = Date.now() + 150_000; ;) {
    if (!(await isBusy(MARKED)) && !(await isBusy(INFERRING)) && !(await isBusy(MARKED))) return;
    if (Date.now() > deadline) throw new Error('rollouts were not derived within 150 s');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Everything derived, but marks of time. Verdicts are the ledger's. */
async function derived(pool: pg.Pool): Promise<Record<string, unknown[]>> {
  const sql = async (text: string) => (await pool.query(text)).rows;
  const columns = `r.seq, r.id, group_key, reward, reward_positive, max_reward, last_reward, reward_reported, bytes, run_seq, env_id, task_id, task_index, step, policy_step,
    sample_idx, turns, tool_turns, messages, calls, call_errors, tokens_out, tokens_tool, gaps, flags, provenance, reward_steps, group_size, phase, stop, failure, normaliser, finished, split`;
  return {
    rollouts: await sql(`SELECT ${columns} FROM rollouts r ORDER BY r.seq`),
    tools: await sql('SELECT * FROM rollout_tools ORDER BY rollout_seq, tool'),
    steps: await sql(`SELECT (to_jsonb(s) - 'version') AS row FROM step_rollups s ORDER BY run_seq, env_id, phase, step`),
    groups: await sql('SELECT * FROM rollout_groups ORDER BY run_seq, group_key, phase, step'),
    toolRollups: await sql('SELECT * FROM tool_rollups ORDER BY run_seq, phase, step, env_id, tool'),
    thresholds: await sql(
      'SELECT * FROM run_environments e WHERE EXISTS (SELECT FROM rollouts r WHERE (r.run_seq, r.env_id) = (e.run_seq, e.env_id)) ORDER BY run_seq, env_id',
    ),
  };
}

/** Throws away all that is derived, has it made again, and expects the same. */
export async function expectSameFromNothing(pool: pg.Pool): Promise<void> {
  await settled(pool);
  const before = await derived(pool);
  expect(before.steps!.length).toBeGreaterThan(0);
  await pool.query('TRUNCATE rollouts, rollout_tools, rollout_groups, step_rollups, tool_rollups, dirty_steps, run_environments');
  await pool.query('UPDATE rollout_heads SET dirty = true, revision = revision + 1 WHERE run_seq IS NOT NULL');
  await settled(pool);
  const after = await derived(pool);
  for (const key of Object.keys(before)) expect(before[key], key).toEqual(after[key]);
}
