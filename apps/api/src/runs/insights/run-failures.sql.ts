import type pg from 'pg';
import type { CauseRow } from '../../rollouts/failure-texts.service.ts';
import { SOLVED } from '../solved.sql.ts';

/** Rollouts of a run that a page of failures counts. */
export interface FailureScope {
  orgId: string;
  runSeq: number;
  phase: number | null;
  /** Both ends included; null: also rollouts without a step. */
  steps: { from: number; to: number } | null;
  env: string | null;
}

/** $1 to $6, over `rollouts` or `step_rollups`, whose step -1 is that of rollouts without one. */
const IN_SCOPE = (row: string, step: string) => `${row}.run_seq = $1 AND ($2::smallint IS NULL OR ${row}.phase = $2)
  AND ($3::int IS NULL OR ${step} BETWEEN $3 AND $4)
  AND ($5::text IS NULL OR ${row}.env_id = ANY(ARRAY(SELECT e.id FROM rollout_environments e WHERE e.org_id = $6::uuid AND e.environment = $5)))`;
const valuesOf = ({ orgId, runSeq, phase, steps, env }: FailureScope) => [
  runSeq,
  phase,
  steps?.from ?? null,
  steps?.to ?? null,
  env,
  orgId,
];

export interface ClusterRow {
  cause: string;
  n: number;
  solved: number;
  mean_reward: number | null;
  first_step: number | null;
  last_step: number | null;
  /** The newest rollout, of those that did not succeed if there are any. */
  example: string;
  kinds: number;
  failed: number;
  all_solved: number;
  policy: number;
  environment: number;
  infrastructure: number;
}

/**
 * Rollouts by cause, those with most unsuccessful ones first; each row also has the sums over all causes. The order depends on nothing but
 * the rows. Plan: Index Only Scan using rollouts_run_cause_idx over the failed rollouts of the run; runs and run_environments are small.
 */
export const CLUSTERS = `
SELECT c.*, (count(*) OVER ())::int AS kinds, (sum(n) OVER ())::int AS failed, (sum(solved) OVER ())::int AS all_solved,
  COALESCE(sum(n) FILTER (WHERE cause & 3 = 1) OVER (), 0)::int AS policy, COALESCE(sum(n) FILTER (WHERE cause & 3 = 2) OVER (), 0)::int AS environment,
  COALESCE(sum(n) FILTER (WHERE cause & 3 = 3) OVER (), 0)::int AS infrastructure
FROM (
  SELECT cause, count(*)::int AS n, (count(*) FILTER (WHERE solved))::int AS solved, avg(reward) AS mean_reward, min(step) AS first_step,
    max(step) AS last_step, COALESCE(max(seq) FILTER (WHERE NOT solved), max(seq))::text AS example
  FROM (
    SELECT r.cause, r.step, r.seq, r.reward, r.reward IS NOT NULL AND ${SOLVED} AS solved
    FROM rollouts r JOIN runs u ON u.seq = r.run_seq LEFT JOIN run_environments x ON x.run_seq = r.run_seq AND x.env_id = r.env_id
    WHERE r.cause IS NOT NULL AND r.cause <> 0 AND ${IN_SCOPE('r', 'r.step')}) failed
  GROUP BY cause) c
ORDER BY n - solved DESC, n DESC, cause LIMIT $7`;

export async function selectClusters(pool: pg.Pool, scope: FailureScope, limit: number): Promise<ClusterRow[]> {
  const { rows } = await pool.query<ClusterRow>({ name: 'run-failures', text: CLUSTERS, values: [...valuesOf(scope), limit] });
  return rows;
}

/** Rollouts whose cause is not derived yet. Plan: Index Only Scan using rollouts_run_cause_idx. */
export async function countUnderived(pool: pg.Pool, scope: FailureScope): Promise<number> {
  const { rows } = await pool.query<{ n: number }>({
    name: 'run-failures-underived',
    text: `SELECT count(*)::int AS n FROM rollouts r WHERE r.cause = 0 AND ${IN_SCOPE('r', 'r.step')}`,
    values: valuesOf(scope),
  });
  return rows[0]!.n;
}

/** Rollouts by step; -1 for those without one. Plan: Index Scan using step_rollups_pkey, one row per step. */
export async function selectStepSizes(pool: pg.Pool, scope: FailureScope): Promise<{ step: number; rollouts: number }[]> {
  const { rows } = await pool.query<{ step: number; rollouts: number }>({
    name: 'run-failures-steps',
    text: `SELECT s.step, sum(s.rollouts)::int AS rollouts FROM step_rollups s
      WHERE ($5::text IS NOT NULL OR s.env_id = 0) AND ${IN_SCOPE('s', 's.step')} GROUP BY 1 ORDER BY 1`,
    values: valuesOf(scope),
  });
  return rows;
}

export interface TrendRow {
  cause: string;
  bin: number;
  n: number;
}

/** Rollouts of these causes by bins of `width` steps from `first` on. Plan: per cause an Index Only Scan using rollouts_run_cause_idx. */
export async function selectTrends(
  pool: pg.Pool,
  scope: FailureScope,
  { causes, first, width }: { causes: readonly string[]; first: number; width: number },
): Promise<TrendRow[]> {
  const { rows } = await pool.query<TrendRow>({
    name: 'run-failures-trends',
    text: `SELECT r.cause::text, (r.step - $8::int) / $9::int AS bin, count(*)::int AS n FROM rollouts r
      WHERE r.cause = ANY($7::bigint[]) AND r.step >= $8 AND ${IN_SCOPE('r', 'r.step')} GROUP BY 1, 2`,
    values: [...valuesOf(scope), causes, first, width],
  });
  return rows;
}

/** The first step of each cause in the whole run. Plan: per cause an Index Only Scan using rollouts_run_cause_idx. */
export async function selectFirstSteps(pool: pg.Pool, scope: FailureScope, causes: readonly string[]): Promise<Map<string, number | null>> {
  const { rows } = await pool.query<{ cause: string; step: number | null }>({
    name: 'run-failures-first-steps',
    text: `SELECT r.cause::text, min(r.step) AS step FROM rollouts r WHERE r.cause = ANY($7::bigint[]) AND ${IN_SCOPE('r', 'r.step')} GROUP BY 1`,
    values: [...valuesOf({ ...scope, steps: null }), causes],
  });
  return new Map(rows.map(({ cause, step }) => [cause, step]));
}

export interface ExampleRow extends CauseRow {
  id: string;
  step: number | null;
}

/** Plan: rollouts_pkey. */
export async function selectExamples(pool: pg.Pool, runSeq: number, seqs: readonly string[]): Promise<ExampleRow[]> {
  const { rows } = await pool.query<ExampleRow>({
    name: 'run-failures-examples',
    text: `SELECT seq, id, step, revision, stop, cause, cause_index, cause_kind, cause_tool FROM rollouts WHERE seq = ANY($2::bigint[]) AND run_seq = $1`,
    values: [runSeq, seqs],
  });
  return rows;
}

export interface OtherRunRow {
  cause: string;
  name: string;
  n: number;
}

/**
 * The newest `within` other runs of the organisation with these causes; their rollouts are counted up to `most`. Plan: the newest runs of
 * the organisation, then one probe of rollouts_run_cause_idx for each run and cause, at most `most` entries of it.
 */
export async function selectOtherRuns(
  pool: pg.Pool,
  { orgId, runSeq }: FailureScope,
  causes: readonly string[],
  { within, most }: { within: number; most: number },
): Promise<OtherRunRow[]> {
  const { rows } = await pool.query<OtherRunRow>({
    name: 'run-failures-other-runs',
    text: `SELECT f.cause::text, u.name, c.n FROM unnest($3::bigint[]) AS f(cause)
      CROSS JOIN (SELECT seq, name FROM runs WHERE org_id = $1 AND seq <> $2 AND deleted_at IS NULL ORDER BY seq DESC LIMIT $4) u
      CROSS JOIN LATERAL (
        SELECT count(*)::int AS n FROM (SELECT FROM rollouts r WHERE r.run_seq = u.seq AND r.cause = f.cause AND r.cause IS NOT NULL LIMIT $5) counted) c
      WHERE c.n > 0 ORDER BY u.seq DESC`,
    values: [orgId, runSeq, causes, within, most],
  });
  return rows;
}
