import type pg from 'pg';
import type { ErasableRollout } from './erase.sql.ts';
import { oldestOfRun } from '../run-order.sql.ts';

/** Rollouts are ordered by arrival, so that the oldest ones are among the first of a run. This many are checked. */
const WINDOW = 10_000;

export interface RetainedRun {
  seq: number;
  id: string;
  org_id: string;
  days: number;
}

/** Runs with a retention. Plan: a scan of the small tables runs and organisations, hourly. */
export async function selectRetainedRuns(pool: pg.Pool): Promise<RetainedRun[]> {
  const { rows } = await pool.query<RetainedRun>(
    `SELECT r.seq, r.id, r.org_id, COALESCE(r.retention_days, o.retention_days) AS days FROM runs r JOIN organisations o ON o.id = r.org_id
     WHERE r.deleted_at IS NULL AND COALESCE(r.retention_days, o.retention_days) IS NOT NULL ORDER BY r.seq`,
  );
  return rows;
}

/** Rollouts without an event for this many days. Plan: Index Scan using rollout_heads_run_seq_idx, bounded. */
export async function selectExpired(pool: pg.Pool, run: RetainedRun, limit: number): Promise<ErasableRollout[]> {
  const { rows } = await pool.query<ErasableRollout>(
    `SELECT seq, id, org_id FROM ${oldestOfRun('$1', '0', WINDOW, 'rollout_heads')} oldest
     WHERE last_at < now() - $2 * interval '1 day' ORDER BY seq LIMIT $3`,
    [run.seq, run.days, limit],
  );
  return rows;
}

/** A page of rollouts without a start event, which are in no run. `last`: null after the last page. */
export interface Strays {
  expired: ErasableRollout[];
  last: string | null;
}

/** Those after `after` of organisations with a retention. Plan: Index Scan using rollout_heads_run_seq_idx from `after`, bounded. */
export async function selectStrays(pool: pg.Pool, after: string, limit = WINDOW): Promise<Strays> {
  const { rows } = await pool.query<ErasableRollout & { expired: boolean }>(
    `SELECT h.seq, h.id, h.org_id, h.last_at < now() - o.retention_days * interval '1 day' AS expired
     FROM rollout_heads h JOIN organisations o ON o.id = h.org_id
     WHERE h.run_seq IS NULL AND h.seq > $1 AND o.retention_days IS NOT NULL ORDER BY h.seq LIMIT $2`,
    [after, limit],
  );
  return { expired: rows.filter(({ expired }) => expired), last: rows.at(-1)?.seq ?? null };
}

/** False when the organisation has no such run. */
export async function updateRunRetention(pool: pg.Pool, orgId: string, runId: string, days: number | null): Promise<boolean> {
  const { rowCount } = await pool.query('UPDATE runs SET retention_days = $3 WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL', [
    orgId,
    runId,
    days,
  ]);
  return rowCount === 1;
}

export async function updateOrganisationRetention(pool: pg.Pool, orgId: string, days: number | null): Promise<void> {
  await pool.query('UPDATE organisations SET retention_days = $2 WHERE id = $1', [orgId, days]);
}
