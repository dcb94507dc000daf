import type pg from 'pg';

/** Deletes text sessions with their turns. `sids`: a query that selects them. */
const erase = (sids: string) => `
  WITH gone AS MATERIALIZED (${sids}),
    turns AS (DELETE FROM text_turns WHERE sid = ANY(ARRAY(SELECT sid FROM gone)))
  DELETE FROM text_sessions WHERE sid = ANY(ARRAY(SELECT sid FROM gone))`;

/** Plan: Index Scan using text_sessions_due_at_idx; Index Scan using text_turns_pkey, text_sessions_pkey. */
const DUE = erase('SELECT sid FROM text_sessions WHERE due_at < now() ORDER BY due_at LIMIT $1');

/** Plan: per organisation with a retention an Index Scan using text_sessions_org_id_created_at_idx, per row a probe of sessions_pkey. */
const EXPIRED = erase(`
  SELECT x.sid FROM organisations o JOIN text_sessions x ON x.org_id = o.id::text LEFT JOIN sessions s ON s.sid = x.sid
  WHERE o.retention_days IS NOT NULL AND x.created_at < now() - o.retention_days * interval '1 day'
    AND (s.sid IS NULL OR s.ended_at < now() - o.retention_days * interval '1 day') LIMIT $1`);

/** Erases text sessions a day after their rollout was complete. Returns their number, at most `limit`. */
export async function eraseDueTexts(pool: pg.Pool, limit: number): Promise<number> {
  return (await pool.query(DUE, [limit])).rowCount ?? 0;
}

/** Erases text sessions after the retention of their organisation. */
export async function eraseExpiredTexts(pool: pg.Pool, limit: number): Promise<number> {
  return (await pool.query(EXPIRED, [limit])).rowCount ?? 0;
}
