import type pg from 'pg';

/** Events older than this are not a backlog of uploads: their rollouts are derived again, after an upgrade or new settings of a run. */
const UPLOADED = `interval '10 minutes'`;

/**
 * Recently uploaded rollouts that wait for derivation, counted up to `limit`, among those of the newest runs. Plan: Index Scan Backward using
 * rollout_heads_dirty_idx (partial), at most twice `limit` rows.
 */
export async function countDirty(pool: pg.Pool, limit: number): Promise<number> {
  const { rows } = await pool.query<{ waiting: number }>({
    name: 'ingest-backlog',
    text: `SELECT count(*)::int AS waiting FROM (SELECT FROM (
        SELECT last_at, sealed_at FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL ORDER BY run_seq DESC, seq DESC LIMIT 2 * $1) newest
      WHERE sealed_at IS NULL AND last_at > now() - ${UPLOADED} LIMIT $1) dirty`,
    values: [limit],
  });
  return rows[0]!.waiting;
}
