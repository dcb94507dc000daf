import type pg from 'pg';
import { probe } from '../../platform/database/probe.sql.ts';
import { newestOfRun, oldestOfRun } from '../../store/run-order.sql.ts';

export interface ToolRow {
  tool: string;
  rollouts: number;
  calls: number;
  errors: number;
  result_bytes: number;
  scored: number;
  reward_sum: number;
  timed: number;
  p50_ms: number | null;
  p95_ms: number | null;
  policy: number;
  environment: number;
  infrastructure: number;
}

/** Tools of a run, most called first. Plan: Index Scan using tool_rollups_pkey, one row per step, environment and tool. */
export const TOOLS = `
SELECT tool, sum((figures->>'rollouts')::int)::float8 AS rollouts, sum((figures->>'calls')::int)::float8 AS calls, sum((figures->>'errors')::int)::float8 AS errors,
  sum((figures->>'result_bytes')::float8) AS result_bytes, sum((figures->>'scored')::int)::float8 AS scored, COALESCE(sum((figures->>'reward_sum')::float8), 0) AS reward_sum,
  sum((figures->>'timed')::int)::float8 AS timed,
  sum((figures->>'p50_ms')::float8 * (figures->>'timed')::int) / NULLIF(sum((figures->>'timed')::int), 0) AS p50_ms,
  sum((figures->>'p95_ms')::float8 * (figures->>'timed')::int) / NULLIF(sum((figures->>'timed')::int), 0) AS p95_ms,
  sum((figures->>'policy')::int)::float8 AS policy, sum((figures->>'environment')::int)::float8 AS environment, sum((figures->>'infrastructure')::int)::float8 AS infrastructure
FROM tool_rollups WHERE run_seq = $1 AND ($2::smallint IS NULL OR phase = $2) AND step >= $3 AND step <= $4
GROUP BY tool ORDER BY calls DESC, tool LIMIT 500`;

export async function selectTools(pool: pg.Pool, runSeq: number, phase: number | null, from: number, to: number): Promise<ToolRow[]> {
  const { rows } = await pool.query<ToolRow>({ name: 'run-tools', text: TOOLS, values: [runSeq, phase, from, to] });
  return rows;
}

/**
 * Exact percentiles of latency; null when the run has more than `most` rollouts. Plan: rollouts_run_seq_idx, at most `most` rows; one probe of
 * rollout_calls_pkey per rollout.
 */
export async function selectLatencies(
  pool: pg.Pool,
  runSeq: number,
  phase: number | null,
  from: number,
  to: number,
  most: number,
): Promise<Map<string, [number, number]> | null> {
  const { rows } = await pool.query<{ tool: string | null; latency: [number, number] | null; rollouts: number }>({
    name: 'run-latencies',
    text: `WITH picked AS MATERIALIZED (SELECT seq, phase, step FROM ${oldestOfRun('$1', '0', '$5 + 1')} r),
      timed AS (SELECT c.tool, c.duration_ms FROM picked r JOIN rollout_calls c ON c.rollout_seq = r.seq
        WHERE c.duration_ms IS NOT NULL AND ($2::smallint IS NULL OR r.phase = $2) AND COALESCE(r.step, -1) BETWEEN $3 AND $4)
      SELECT t.tool, t.latency, counted.rollouts FROM (SELECT count(*)::int AS rollouts FROM picked) counted
      LEFT JOIN (SELECT tool, percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms) AS latency FROM timed GROUP BY tool) t ON true`,
    values: [runSeq, phase, from, to, most],
  });
  if (rows[0]!.rollouts > most) return null;
  return new Map(rows.flatMap(({ tool, latency }) => (tool === null || latency === null ? [] : [[tool, latency] as const])));
}

export interface ConfigRow {
  looked_at: number;
  bytes: number;
  provenance: Record<string, number>;
  sources: Record<string, number>;
  models: Record<string, number>;
  verdicts: Record<string, number>;
  normalisers: Record<string, number>;
  ingest: { accepted: number; duplicates: number; conflicts: number; late: number; nonfinite: number } | null;
}

/** Plan: rollouts_run_seq_idx backwards, at most `most` rows, one probe of rollout_heads_pkey and rollout_meta_pkey per row; ingest_counters_pkey. */
export async function selectConfig(pool: pg.Pool, runSeq: number, most: number): Promise<ConfigRow> {
  const counts = (expression: string) =>
    `(SELECT COALESCE(jsonb_object_agg(k, n), '{}') FROM (SELECT ${expression} AS k, count(*) AS n FROM picked WHERE ${expression} IS NOT NULL GROUP BY 1) c)`;
  const { rows } = await pool.query<ConfigRow>({
    name: 'run-config',
    text: `WITH picked AS MATERIALIZED (
        SELECT r.provenance, r.bytes, h.verdict, r.normaliser, m.source, m.model FROM ${newestOfRun('$1', '$2')} r
        ${probe('rollout_heads', 'seq = r.seq', 'h')} LEFT ${probe('rollout_meta', 'rollout_seq = r.seq', 'm')})
      SELECT (SELECT count(*)::int FROM picked) AS looked_at, (SELECT COALESCE(sum(bytes), 0)::float8 FROM picked) AS bytes, ${counts('provenance::text')} AS provenance,
        ${counts('source')} AS sources, ${counts('model')} AS models, ${counts(`COALESCE(verdict::text, 'null')`)} AS verdicts, ${counts('normaliser::text')} AS normalisers,
        (SELECT jsonb_build_object('accepted', accepted, 'duplicates', duplicates, 'conflicts', conflicts, 'late', late, 'nonfinite', nonfinite) FROM ingest_counters WHERE run_seq = $1) AS ingest`,
    values: [runSeq, most],
  });
  return rows[0]!;
}

/** The number of the first parameter of the query. */
export const FIRST_FACET_PARAMETER = 3;
type Counts = { value: string; count: number }[];
export interface FacetRow {
  total: number;
  env: Counts;
  split: Counts;
  phase: { value: number; count: number }[];
  stop: { value: number; count: number }[];
  tool: Counts;
  tool_error: Counts;
  tag: Counts;
  model: Counts;
  /** By packed provenance (libs/rollouts). */
  provenance: { value: number; count: number }[];
  reward_bins: { from: number; below: number; count: number }[];
  policy_step_min: number | null;
  policy_step_max: number | null;
  step_min: number | null;
  step_max: number | null;
  reward_min: number | null;
  reward_max: number | null;
  unscored: number;
  errors: number;
}

/**
 * Edges of about ten bins over the rewards of `picked`, each 1, 2 or 5 times a power of ten wide. They are computed as decimals, so that an edge
 * equals the number in a query: a bin counts what `reward:>=from reward:<below` finds.
 */
const REWARD_BINS = `span AS (SELECT min(reward)::numeric AS lo, max(reward)::numeric AS hi FROM picked),
    scale AS (SELECT lo, hi, power(10::numeric, floor(log(hi - lo))) AS p FROM span WHERE hi > lo),
    unit AS (SELECT lo, hi, p * CASE WHEN hi - lo <= 1.5 * p THEN 0.1 WHEN hi - lo <= 3 * p THEN 0.2 WHEN hi - lo <= 7.5 * p THEN 0.5 ELSE 1 END AS u FROM scale),
    edges AS (SELECT array_agg((k * u)::float8 ORDER BY k) AS e FROM unit, generate_series(floor(lo / u) - 1, floor(hi / u) + 1) AS k),
    filled AS (SELECT width_bucket(s.reward, e) AS b, count(*)::int AS n FROM picked s, edges WHERE s.reward IS NOT NULL GROUP BY 1),
    bins AS (SELECT b, e[b] AS low, e[b + 1] AS high, COALESCE(n, 0) AS n FROM edges, generate_series(1, cardinality(e) - 1) AS b LEFT JOIN filled USING (b))`;

/** Values of at most `$2` rollouts. Plan: an index of rollouts by run, bounded; then one probe of rollout_tools_pkey and rollout_meta_pkey per rollout, and annotations_run_seq_idx. */
export function facetSql(where: string | null): string {
  const count = (value: string, from: string) =>
    `(SELECT COALESCE(json_agg(json_build_object('value', v, 'count', n) ORDER BY n DESC, v), '[]') FROM (SELECT ${value} AS v, count(*)::int AS n FROM ${from} WHERE ${value} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 200) c)`;
  const tagged = `(SELECT DISTINCT a.rollout_seq, a.tag FROM annotations a JOIN picked s ON s.seq = a.rollout_seq WHERE a.run_seq = $1 AND a.tag IS NOT NULL) a`;
  return `WITH picked AS MATERIALIZED (${where === null ? `SELECT r.* FROM ${newestOfRun('$1', '$2')} r` : `SELECT r.* FROM rollouts r WHERE r.run_seq = $1 AND (${where}) LIMIT $2`}), ${REWARD_BINS},
    used AS MATERIALIZED (SELECT x.tool, x.errors FROM picked s ${probe('rollout_tools', 'rollout_seq = s.seq', 'x')})
    SELECT (SELECT count(*)::int FROM picked) AS total, ${count('e.environment', 'picked s JOIN rollout_environments e ON e.id = s.env_id')} AS env, ${count('s.split', 'picked s')} AS split,
      ${count('s.phase', 'picked s')} AS phase, ${count('s.stop', 'picked s')} AS stop, ${count('x.tool', 'used x')} AS tool, ${count('x.tool', '(SELECT tool FROM used WHERE errors > 0) x')} AS tool_error,
      ${count('a.tag', tagged)} AS tag, ${count('m.model', `picked s ${probe('rollout_meta', 'rollout_seq = s.seq', 'm')}`)} AS model, ${count('s.provenance', 'picked s')} AS provenance,
      (SELECT COALESCE(json_agg(json_build_object('from', low, 'below', high, 'count', n) ORDER BY b), '[]') FROM bins) AS reward_bins,
      min(step) AS step_min, max(step) AS step_max, min(policy_step) AS policy_step_min, max(policy_step) AS policy_step_max,
      min(reward) AS reward_min, max(reward) AS reward_max, count(*) FILTER (WHERE reward IS NULL)::int AS unscored,
      count(*) FILTER (WHERE call_errors > 0)::int AS errors FROM picked`;
}

export async function selectFacets(
  pool: pg.Pool,
  runSeq: number,
  most: number,
  where?: { sql: string; values: readonly unknown[] },
): Promise<FacetRow> {
  const { rows } = await pool.query<FacetRow>(facetSql(where?.sql ?? null), [runSeq, most, ...(where?.values ?? [])]);
  return rows[0]!;
}
