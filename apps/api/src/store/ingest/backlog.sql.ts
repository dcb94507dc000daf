import type pg from 'pg';

/** Events older than this are not a backlog of uploads: their rollouts are derived again, after an upgrade or new settings of a run. */
const UPLOADED = `interval '10 minutes'`;

/**
 * Recently uploaded rollouts that wait for derivation by organisation, counted up to `limit` among those of the newest runs. Plan: Index
 * Scan Backward using rollout_heads_dirty_idx (partial), at most twice `limit` rows.
 */
export async function countWaiting(pool: pg.Pool, limit: number): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ org_id: string; waiting: number }>({
    name: 'ingest-backlog',
    text: `SELECT org_id, count(*)::int AS waiting FROM (SELECT org_id FROM (
        SELECT org_id, last_at, sealed_at FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL ORDER BY run_seq DESC, seq DESC LIMIT 2 * $1) newest
      WHERE sealed_at IS NULL AND last_at > now() - ${UPLOADED} LIMIT $1) dirty GROUP BY org_id`,
    values: [limit],
  });
  return new Map(rows.map(({ org_id, waiting }) => [org_id, waiting]));
}
