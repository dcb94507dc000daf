import type pg from 'pg';
import { expect } from 'vitest';

/** When nothing is left to derive. */
export async function settled(pool: pg.Pool): Promise<void> {
  for (const deadline = Date.now() + 60_000; ;) {
    const { rows } =
      await pool.query(`SELECT EXISTS (SELECT FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL) OR EXISTS (SELECT FROM dirty_steps)
      OR EXISTS (SELECT FROM runs WHERE inference_due AND deleted_at IS NULL) AS busy`);
    if (!rows[0].busy) return;
    if (Date.now() > deadline) throw new Error('rollouts were not derived within a minute');
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
