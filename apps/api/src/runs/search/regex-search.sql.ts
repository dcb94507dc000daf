import type pg from 'pg';

/** Parameters before those of the query. */
export const FIRST_REGEX_PARAMETER = 5;

export interface RegexPage {
  runSeqs: readonly number[];
  after: string;
  limit: number;
  /** Letters that some word of the message contains; empty = unknown. */
  fragments: readonly string[];
  /** A condition on `r` with parameters from `FIRST_REGEX_PARAMETER` on. */
  where: { sql: string; values: readonly unknown[] };
}

export interface RegexRollout {
  seq: string;
  /** Of its texts. */
  bytes: number;
  /** Whether a message may match. */
  candidate: boolean;
}

/**
 * The next rollouts, oldest first, and which of them may have a message that matches: one with words that contain the fragments, or one that is not indexed yet.
 * Plan: rollouts_run_seq_idx from the keyset's place; per rollout one probe of rollout_heads_pkey and an Index Scan of rollout_search_pkey (OFFSET 0 keeps it so).
 */
export async function selectRegexRollouts(pool: pg.Pool, page: RegexPage): Promise<RegexRollout[]> {
  const run = page.runSeqs.length === 1 ? 'r.run_seq = ($1::int[])[1]' : 'r.run_seq = ANY($1::int[])';
  const unsearched = 'EXISTS (SELECT FROM rollout_heads h WHERE h.seq = r.seq AND h.unsearched)';
  const words = `EXISTS (SELECT FROM (SELECT s.words FROM rollout_search s WHERE s.rollout_seq = r.seq OFFSET 0) s
    WHERE array_to_string(tsvector_to_array(s.words), ' ') LIKE ALL($4::text[]))`;
  const { rows } = await pool.query<RegexRollout>(
    `WITH page AS MATERIALIZED (SELECT * FROM rollouts r WHERE ${run} AND r.seq > $2::bigint ORDER BY r.seq LIMIT $3)
     SELECT r.seq::text, r.bytes::float8 AS bytes, (${page.fragments.length === 0 ? '$4::text[] IS NOT NULL' : `(${unsearched} OR ${words})`}) AND (${page.where.sql}) AS candidate
     FROM page r ORDER BY r.seq`,
    [page.runSeqs, page.after, page.limit, page.fragments.map((letters) => `%${letters}%`), ...page.where.values],
  );
  return rows;
}

/** Rollouts of these runs. Plan: step_rollups_pkey, a row a step. */
export async function countRunRollouts(pool: pg.Pool, runSeqs: readonly number[]): Promise<number> {
  const { rows } = await pool.query<{ rollouts: number }>(
    'SELECT COALESCE(sum(rollouts), 0)::int AS rollouts FROM step_rollups WHERE run_seq = ANY($1::int[]) AND env_id = 0',
    [runSeqs],
  );
  return rows[0]!.rollouts;
}
