import type pg from 'pg';

/** Rollouts that wait for derivation, counted up to `limit`. Plan: Index Only Scan using rollout_heads_dirty_idx (partial). */
export async function countDirty(pool: pg.Pool, limit: number): Promise<number> {
  const { rows } = await pool.query<{ waiting: number }>({
    name: 'ingest-backlog',
    text: 'SELECT count(*)::int AS waiting FROM (SELECT FROM rollout_heads WHERE dirty AND run_seq IS NOT NULL LIMIT $1) dirty',
    values: [limit],
  });
  return rows[0]!.waiting;
}
