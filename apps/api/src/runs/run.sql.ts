import { createHash } from 'node:crypto';
import type pg from 'pg';

/** Whether run `run` is over: events of its end may arrive up to a minute after the mark, and a later one continues it. */
export const isFinished = (run: string): string =>
  `(${run}.finished_at IS NOT NULL AND ${run}.updated_at <= ${run}.finished_at + interval '1 minute')`;

export interface RunRow {
  id: string;
  seq: number;
  name: string;
  settings: Record<string, unknown>;
  inference: Record<string, unknown> | null;
  retention_days: number | null;
  tags: string[];
  version: string;
  num_rollouts: number;
  num_scored: number;
  num_errors: number;
  num_finished: number;
  num_messages: string;
  avg_reward: number | null;
  last_step: number | null;
  environments: string[] | null;
  created_at: Date;
  updated_at: Date;
  finished: boolean;
}

export interface RunFilter {
  orgId: string;
  search?: string;
  name?: string;
  seq?: number;
  tag?: string;
  limit: number;
  offset: number;
  /** End of the previous page. */
  after?: { updatedAt: string; id: string };
}

/** A page of runs, newest activity first. Plan: index scan of runs_org_id_updated_at_id_idx. */
const PAGE = `
  SELECT * FROM runs
  WHERE org_id = $1 AND deleted_at IS NULL AND ($2::text IS NULL OR position(lower($2) in lower(name)) > 0) AND ($3::bytea IS NULL OR name_hash = $3)
    AND ($4::int IS NULL OR seq = $4) AND ($5::text IS NULL OR $5 = ANY(tags))
    AND ($6::timestamptz IS NULL OR (updated_at, id) < ($6, $7::uuid))
  ORDER BY updated_at DESC, id DESC LIMIT $8 OFFSET $9`;

/**
 * A page of runs, newest activity first, with the figures of each from its rollups. Plan: index scan of runs_org_id_updated_at_id_idx, then
 * per run an index scan of step_rollups_pkey (env_id 0) and of run_environments_pkey: no rollout is read.
 */
const RUNS = `
SELECT r.id, r.seq, r.name, r.settings, r.inference, r.retention_days, r.tags, r.version::text, r.created_at, r.updated_at, ${isFinished('r')} AS finished, f.*,
  (SELECT array_agg(DISTINCT e.environment) FROM (
     SELECT env_id FROM run_environments e WHERE run_seq = r.seq AND EXISTS (SELECT FROM step_rollups s WHERE s.run_seq = e.run_seq AND s.env_id = e.env_id) LIMIT 20) x JOIN rollout_environments e ON e.id = x.env_id WHERE e.environment IS NOT NULL) AS environments
FROM (${PAGE}
) r CROSS JOIN LATERAL (
  SELECT COALESCE(sum(rollouts), 0)::int AS num_rollouts, COALESCE(sum(scored), 0)::int AS num_scored, COALESCE(sum(errors), 0)::int AS num_errors,
    COALESCE(sum(finished), 0)::int AS num_finished, COALESCE(sum(messages), 0)::text AS num_messages,
    sum(reward_sum) / NULLIF(sum(scored), 0) AS avg_reward, NULLIF(max(step), -1) AS last_step
  FROM step_rollups WHERE run_seq = r.seq AND env_id = 0
) f ORDER BY r.updated_at DESC, r.id DESC`;

const valuesOf = (filter: RunFilter): unknown[] => [
  filter.orgId,
  filter.search ?? null,
  filter.name === undefined ? null : createHash('sha256').update(filter.name).digest(),
  filter.seq ?? null,
  filter.tag ?? null,
  filter.after?.updatedAt ?? null,
  filter.after?.id ?? null,
  filter.limit,
  filter.offset,
];

export async function selectRuns(pool: pg.Pool, filter: RunFilter): Promise<RunRow[]> {
  const { rows } = await pool.query<RunRow>(RUNS, valuesOf(filter));
  return rows;
}

/** The runs of a page. */
export async function selectPageSeqs(pool: pg.Pool, filter: RunFilter): Promise<number[]> {
  const { rows } = await pool.query<{ seq: number }>(`SELECT seq FROM (${PAGE}) r`, valuesOf(filter));
  return rows.map(({ seq }) => seq);
}

/** Maximum of points in a sparkline. */
const SPARKLINE = 100;

/**
 * Mean rewards over the steps of each run, in at most 100 equal stretches of steps: of training if the run has any, else of evaluation.
 * Plan: per run an Index Scan using step_rollups_pkey over the rows of all environments together.
 */
export async function selectSparklines(pool: pg.Pool, runSeqs: readonly number[]): Promise<Map<number, (number | null)[]>> {
  const { rows } = await pool.query<{ run_seq: number; points: (number | null)[] | null }>({
    name: 'runs-sparklines',
    text: `SELECT w.run_seq, (SELECT json_agg(mean ORDER BY stretch) FROM (
          SELECT stretch, sum(reward_sum) / NULLIF(sum(scored), 0) AS mean FROM (
            SELECT reward_sum, scored, (row_number() OVER (ORDER BY step) - 1) / ceil(count(*) OVER () / $2::float8)::int AS stretch FROM step_rollups s
            WHERE s.run_seq = w.run_seq AND s.env_id = 0 AND s.step >= 0
              AND s.phase = (SELECT min(p.phase) FROM step_rollups p WHERE p.run_seq = w.run_seq AND p.env_id = 0)) one
          GROUP BY stretch) points) AS points
      FROM unnest($1::int[]) AS w(run_seq)`,
    values: [runSeqs, SPARKLINE],
  });
  return new Map(rows.map(({ run_seq, points }) => [run_seq, points ?? []]));
}

/** Counts all matching runs, also when the page is past the last one. */
export async function countRuns(pool: pg.Pool, filter: Omit<RunFilter, 'limit' | 'offset'>): Promise<number> {
  const { rows } = await pool.query<{ total: number }>(
    `SELECT count(*)::int AS total FROM runs WHERE org_id = $1 AND deleted_at IS NULL AND ($2::text IS NULL OR position(lower($2) in lower(name)) > 0)
       AND ($3::text IS NULL OR $3 = ANY(tags))`,
    [filter.orgId, filter.search ?? null, filter.tag ?? null],
  );
  return rows[0]!.total;
}

/** The short key of a run of the organisation, by id. */
export async function selectRunSeq(pool: pg.Pool, orgId: string, id: string): Promise<number | null> {
  const { rows } = await pool.query<{ seq: number }>('SELECT seq FROM runs WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL', [
    orgId,
    id,
  ]);
  return rows[0]?.seq ?? null;
}

export async function selectRunSeqByName(pool: pg.Pool, orgId: string, name: string): Promise<number | null> {
  const hash = createHash('sha256').update(name).digest();
  const { rows } = await pool.query<{ seq: number }>('SELECT seq FROM runs WHERE org_id = $1 AND name_hash = $2 AND deleted_at IS NULL', [
    orgId,
    hash,
  ]);
  return rows[0]?.seq ?? null;
}

export interface RunChange {
  settings?: Record<string, unknown>;
  retention_days?: number | null;
  tags?: string[];
  finished?: boolean;
}

export async function updateRun(pool: pg.Pool, runSeq: number, change: RunChange): Promise<void> {
  await pool.query(
    `UPDATE runs SET settings = COALESCE($2, settings), retention_days = CASE WHEN $3 THEN $4 ELSE retention_days END, tags = COALESCE($5, tags),
       finished_at = CASE $6::boolean WHEN true THEN now() WHEN false THEN NULL ELSE finished_at END, version = version + 1
     WHERE seq = $1`,
    [
      runSeq,
      change.settings ?? null,
      change.retention_days !== undefined,
      change.retention_days ?? null,
      change.tags ?? null,
      change.finished ?? null,
    ],
  );
}
