import type pg from 'pg';
import type { StepKey } from './dirty-steps.sql.ts';

/**
 * Writes the figures of each tool of a step, by environment: calls, errors and rewards of the rollouts that used it, and latency and failure
 * classes of the calls that our ledger has. A tool without an uploaded result has no figures. Rewards are summed in ascending order, so that
 * the order of rows does not change the last bit. Unchanged rows are not written.
 * Plan: rollouts_run_step_idx, then rollout_tools_pkey and rollout_calls_pkey per rollout.
 */
const WRITE = `
WITH member AS MATERIALIZED (SELECT seq, env_id, reward FROM rollouts WHERE run_seq = $1 AND COALESCE(step, -1) = $3 AND phase = $2),
used AS (
  SELECT m.env_id, t.tool, count(*) AS rollouts, sum(t.calls) AS calls, sum(t.errors) AS errors, sum(t.result_bytes) AS result_bytes,
    count(m.reward) AS scored, sum(m.reward ORDER BY m.reward) AS reward_sum
  FROM member m JOIN rollout_tools t ON t.rollout_seq = m.seq GROUP BY 1, 2),
called AS (
  SELECT m.env_id, c.tool, count(*) AS timed, percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY c.duration_ms) AS ms,
    count(*) FILTER (WHERE c.failure_class = 'policy') AS policy, count(*) FILTER (WHERE c.failure_class = 'environment') AS environment,
    count(*) FILTER (WHERE c.failure_class = 'infrastructure') AS infrastructure
  FROM member m JOIN rollout_calls c ON c.rollout_seq = m.seq GROUP BY 1, 2),
fresh AS MATERIALIZED (
  SELECT u.env_id, u.tool, jsonb_build_object('rollouts', rollouts, 'calls', calls, 'errors', errors, 'result_bytes', result_bytes, 'scored', scored,
    'reward_sum', reward_sum, 'timed', COALESCE(timed, 0), 'p50_ms', ms[1], 'p95_ms', ms[2], 'policy', COALESCE(policy, 0),
    'environment', COALESCE(environment, 0), 'infrastructure', COALESCE(infrastructure, 0)) AS figures
  FROM used u LEFT JOIN called c ON (c.env_id, c.tool) = (u.env_id, u.tool)),
gone AS (DELETE FROM tool_rollups WHERE run_seq = $1 AND phase = $2 AND step = $3 AND (env_id, tool) NOT IN (SELECT env_id, tool FROM fresh))
INSERT INTO tool_rollups AS old (run_seq, phase, step, env_id, tool, figures) SELECT $1, $2, $3, env_id, tool, figures FROM fresh
ON CONFLICT (run_seq, phase, step, env_id, tool) DO UPDATE SET figures = excluded.figures WHERE old.figures <> excluded.figures`;

export async function writeToolRollups(client: Pick<pg.Pool, 'query'>, { run_seq, phase, step }: StepKey): Promise<void> {
  await client.query({ name: 'figures-write-tools', text: WRITE, values: [run_seq, phase, step] });
}
