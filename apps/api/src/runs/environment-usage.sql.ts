import type pg from 'pg';

/** Use of environments, from rollups: no statement reads rollouts. A run keeps the row of an environment whose rollouts are all erased. */

interface Figures {
  rollouts: number;
  scored: number;
  reward_mean: number | null;
}
export interface EnvironmentUsageRow extends Figures {
  /** Null when the environment was not registered when the rollouts arrived. */
  environment_id: string | null;
  /** The name in the rollouts. */
  environment: string | null;
  runs: number;
  last_at: Date | null;
}
export interface EnvironmentRunRow extends Figures {
  id: string;
  name: string;
  last_step: number | null;
  updated_at: Date;
}

const FIGURES = `COALESCE(sum(f.rollouts), 0)::int AS rollouts, COALESCE(sum(f.scored), 0)::int AS scored,
  sum(f.reward_sum) / NULLIF(sum(f.scored), 0) AS reward_mean`;

/**
 * Plan: Index Scan of rollout_environments_org_id_name_hash_key (the organisation's few), joined with run_environments (small: one row per run
 * and environment), per pair an Index Scan of step_rollups_pkey.
 */
const USAGE = `
  SELECT e.environment_id, CASE WHEN e.environment_id IS NULL THEN e.environment END AS environment,
    count(DISTINCT r.seq)::int AS runs, max(r.updated_at) AS last_at, ${FIGURES}
  FROM rollout_environments e
  JOIN run_environments re ON re.env_id = e.id
  JOIN runs r ON r.seq = re.run_seq AND r.deleted_at IS NULL
  CROSS JOIN LATERAL (
    SELECT sum(rollouts) AS rollouts, sum(scored) AS scored, sum(reward_sum) AS reward_sum
    FROM step_rollups WHERE run_seq = re.run_seq AND env_id = re.env_id) f
  WHERE e.org_id = $1 AND r.org_id = $1 AND f.rollouts > 0
  GROUP BY e.environment_id, CASE WHEN e.environment_id IS NULL THEN e.environment END`;

export async function selectUsage(pool: pg.Pool, orgId: string): Promise<EnvironmentUsageRow[]> {
  return (await pool.query<EnvironmentUsageRow>(USAGE, [orgId])).rows;
}

/** Live sessions of the organisation by environment. Plan: Index Scan using sessions_live_idx. */
export async function countLiveSessions(pool: pg.Pool, orgId: string): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ environment: string; count: number }>(
    `SELECT environment, count(*)::int AS count FROM sessions
     WHERE org_id = $1 AND ended_at IS NULL AND environment IS NOT NULL GROUP BY environment`,
    [orgId],
  );
  return new Map(rows.map(({ environment, count }) => [environment, count]));
}

/** Plan: as USAGE, of one environment. */
const RUNS = `
  SELECT r.id, r.name, r.updated_at, NULLIF(max(f.last_step), -1) AS last_step, ${FIGURES}
  FROM rollout_environments e
  JOIN run_environments re ON re.env_id = e.id
  JOIN runs r ON r.seq = re.run_seq AND r.deleted_at IS NULL
  CROSS JOIN LATERAL (
    SELECT sum(rollouts) AS rollouts, sum(scored) AS scored, sum(reward_sum) AS reward_sum, max(step) AS last_step
    FROM step_rollups WHERE run_seq = re.run_seq AND env_id = re.env_id) f
  WHERE e.org_id = $1 AND r.org_id = $1 AND (e.environment_id = $2 OR (e.environment_id IS NULL AND e.environment = $3)) AND f.rollouts > 0
  GROUP BY r.id, r.name, r.updated_at ORDER BY r.updated_at DESC, r.id DESC LIMIT $4`;

export async function selectRunsOf(
  pool: pg.Pool,
  { orgId, environmentId, environment, limit }: { orgId: string; environmentId: string; environment: string; limit: number },
): Promise<EnvironmentRunRow[]> {
  return (await pool.query<EnvironmentRunRow>(RUNS, [orgId, environmentId, environment, limit])).rows;
}
