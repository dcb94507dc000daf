import type pg from 'pg';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';

export interface ToolStepRow {
  step: number;
  rollouts: number;
  calls: number;
  errors: number;
  result_bytes: number;
  timed: number;
  p50_ms: number | null;
  p95_ms: number | null;
}

/** One tool by step. Plan: Index Scan using tool_rollups_pkey over the run's rows of those steps. */
export const TOOL_STEPS = `
SELECT step, sum((figures->>'rollouts')::int)::float8 AS rollouts, sum((figures->>'calls')::int)::float8 AS calls, sum((figures->>'errors')::int)::float8 AS errors,
  sum((figures->>'result_bytes')::float8) AS result_bytes, sum((figures->>'timed')::int)::float8 AS timed,
  sum((figures->>'p50_ms')::float8 * (figures->>'timed')::int) / NULLIF(sum((figures->>'timed')::int), 0) AS p50_ms,
  sum((figures->>'p95_ms')::float8 * (figures->>'timed')::int) / NULLIF(sum((figures->>'timed')::int), 0) AS p95_ms
FROM tool_rollups WHERE run_seq = $1 AND tool = $2 AND ($3::smallint IS NULL OR phase = $3) AND step >= $4 AND step <= $5
  AND ($6::int[] IS NULL OR env_id = ANY($6))
GROUP BY step ORDER BY step LIMIT 20000`;

export interface ToolScope {
  runSeq: number;
  phase: number | null;
  from: number;
  to: number;
}

/** `envIds`: null for every environment. */
export async function selectToolSteps(
  pool: pg.Pool,
  { runSeq, phase, from, to }: ToolScope,
  tool: string,
  envIds: readonly number[] | null = null,
): Promise<ToolStepRow[]> {
  const values = [runSeq, tool, phase, from, to, envIds];
  const { rows } = await pool.query<ToolStepRow>({ name: 'run-tool-steps', text: TOOL_STEPS, values });
  return rows;
}

export interface RunEnvironmentRow {
  id: number;
  environment: string | null;
  variant: string | null;
  /** The last discovery of the environment's newest version; null when it is not registered, or private to another organisation. */
  discovery: EnvironmentDiscoveryView | null;
}

/** The environments of a run. Plan: run_environments_pkey, then per environment environment_versions_environment_id_number_key backwards. */
export async function selectRunEnvironments(pool: pg.Pool, runSeq: number): Promise<RunEnvironmentRow[]> {
  const { rows } = await pool.query<RunEnvironmentRow>({
    name: 'run-environments-discovered',
    text: `SELECT e.id, e.environment, e.variant, v.discovery FROM run_environments re JOIN rollout_environments e ON e.id = re.env_id
      LEFT JOIN LATERAL (
        SELECT o.discovery FROM environments n JOIN environment_versions o ON o.environment_id = n.id
        WHERE n.id = e.environment_id AND (n.org_id = e.org_id OR NOT n.is_private) ORDER BY o.number DESC LIMIT 1) v ON true
      WHERE re.run_seq = $1 ORDER BY e.id`,
    values: [runSeq],
  });
  return rows;
}

/** The environments in which each tool was called. Plan: Index Scan using tool_rollups_pkey. */
export async function selectToolEnvironments(pool: pg.Pool, { runSeq, phase, from, to }: ToolScope): Promise<Map<string, number[]>> {
  const { rows } = await pool.query<{ tool: string; env_ids: number[] }>({
    name: 'run-tool-environments',
    text: `SELECT tool, array_agg(DISTINCT env_id) AS env_ids FROM tool_rollups
      WHERE run_seq = $1 AND ($2::smallint IS NULL OR phase = $2) AND step >= $3 AND step <= $4 GROUP BY tool`,
    values: [runSeq, phase, from, to],
  });
  return new Map(rows.map(({ tool, env_ids }) => [tool, env_ids]));
}

export interface CallerRow {
  seq: string;
  id: string;
  day: string;
  sealed: boolean;
  env_id: number;
}

/** The newest rollouts that called a tool. Plan: rollout_tools_run_idx backwards, one probe of rollouts_pkey and rollout_heads_pkey per row. */
export async function selectCallers(
  pool: pg.Pool,
  { runSeq, phase, from, to }: ToolScope,
  tool: string,
  limit: number,
): Promise<CallerRow[]> {
  const { rows } = await pool.query<CallerRow>({
    name: 'run-tool-callers',
    text: `SELECT r.seq, r.id, h.day::text, h.sealed_at IS NOT NULL AS sealed, r.env_id FROM rollout_tools x
      JOIN rollouts r ON r.seq = x.rollout_seq JOIN rollout_heads h ON h.seq = r.seq
      WHERE x.run_seq = $1 AND x.tool = $2 AND ($3::smallint IS NULL OR r.phase = $3) AND COALESCE(r.step, -1) BETWEEN $4 AND $5
      ORDER BY x.rollout_seq DESC LIMIT $6`,
    values: [runSeq, tool, phase, from, to, limit],
  });
  return rows;
}
