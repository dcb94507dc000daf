import { createHash } from 'node:crypto';
import type pg from 'pg';
import { scoreOf } from '../rollouts/rollout.sql.ts';

/** The run of that name, made unless it is there. Two statements only the first time anybody names it. */
export async function ensureRun(pool: pg.Pool, orgId: string, name: string): Promise<string> {
  const hash = createHash('sha256').update(name).digest();
  const found = await pool.query<{ id: string }>('SELECT id FROM runs WHERE org_id = $1 AND name_hash = $2', [orgId, hash]);
  if (found.rows[0]) return found.rows[0].id;
  const made = await pool.query<{ id: string }>(
    `INSERT INTO runs (org_id, name, name_hash) VALUES ($1, $2, $3)
     ON CONFLICT (org_id, name_hash) DO UPDATE SET updated_at = now() RETURNING id`,
    [orgId, name, hash],
  );
  return made.rows[0]!.id;
}

export interface RunRow {
  id: string;
  name: string;
  num_rollouts: number;
  num_scored: number;
  num_errors: number;
  num_finished: number;
  avg_reward: number | null;
  avg_length: number | null;
  environments: string[] | null;
  created_at: Date;
  updated_at: Date;
  total: number;
}

/**
 * A page of runs, newest activity first, with the figures of each. Plan: index scan of runs_org_id_updated_at_id_idx, then per
 * run an index scan of rollouts_run_id_created_at_id_idx; the counts of a page cost its runs' rollouts once.
 */
const RUNS = `
SELECT r.id, r.name, r.created_at, r.updated_at, r.total::int, f.*
FROM (
  SELECT *, count(*) OVER () AS total FROM runs
  WHERE org_id = $1 AND ($2::text IS NULL OR position(lower($2) in lower(name)) > 0) AND ($3::bytea IS NULL OR name_hash = $3)
    AND ($4::uuid IS NULL OR id = $4)
  ORDER BY updated_at DESC, id LIMIT $5 OFFSET $6
) r CROSS JOIN LATERAL (
  SELECT count(*)::int AS num_rollouts, count(${scoreOf('rollouts')})::int AS num_scored,
    count(failure_class)::int AS num_errors, count(*) FILTER (WHERE finished)::int AS num_finished,
    avg(${scoreOf('rollouts')}) AS avg_reward, avg(num_messages)::float8 AS avg_length,
    (array_agg(DISTINCT environment) FILTER (WHERE environment IS NOT NULL))[1:20] AS environments
  FROM rollouts WHERE run_id = r.id
) f ORDER BY r.updated_at DESC, r.id`;

export interface RunFilter {
  orgId: string;
  search?: string;
  name?: string;
  id?: string;
  limit: number;
  offset: number;
}

export async function selectRuns(pool: pg.Pool, filter: RunFilter): Promise<RunRow[]> {
  const nameHash = filter.name === undefined ? null : createHash('sha256').update(filter.name).digest();
  const { rows } = await pool.query<RunRow>(RUNS, [
    filter.orgId,
    filter.search ?? null,
    nameHash,
    filter.id ?? null,
    filter.limit,
    filter.offset,
  ]);
  return rows;
}

/** All runs that match, also when the page is behind the last one. */
export async function countRuns(pool: pg.Pool, orgId: string, search: string | undefined): Promise<number> {
  const { rows } = await pool.query<{ total: number }>(
    `SELECT count(*)::int AS total FROM runs WHERE org_id = $1 AND ($2::text IS NULL OR position(lower($2) in lower(name)) > 0)`,
    [orgId, search ?? null],
  );
  return rows[0]!.total;
}

/** Notes new activity and wakes the streams of every replica. */
export async function touchRuns(pool: pg.Pool, runIds: string[]): Promise<void> {
  await pool.query(
    `WITH touched AS (UPDATE runs SET updated_at = now() WHERE id = ANY($1::uuid[]) RETURNING id, org_id)
     SELECT pg_notify('palestra_runs', json_build_object('id', id, 'org', org_id)::text) FROM touched`,
    [runIds],
  );
}

/** Erases a run with everything in it. False when the organisation has no such run. */
export async function deleteRun(pool: pg.Pool, orgId: string, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `WITH gone AS (DELETE FROM runs WHERE org_id = $1 AND id = $2 RETURNING id),
     rollout AS (DELETE FROM rollouts USING gone WHERE run_id = gone.id RETURNING rollouts.id AS id),
     meta AS (DELETE FROM rollout_meta USING rollout WHERE org_id = $1 AND rollout_id = rollout.id),
     message AS (DELETE FROM rollout_messages USING rollout WHERE org_id = $1 AND rollout_id = rollout.id)
     SELECT id FROM gone`,
    [orgId, runId],
  );
  return rowCount === 1;
}
