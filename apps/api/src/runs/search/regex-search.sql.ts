import type pg from 'pg';
import { oldestOfRun } from '../../store/run-order.sql.ts';
import { PARTIAL_WORD } from '../../store/derive/search/search-index.sql.ts';

/** Parameters before those of the query. */
export const FIRST_REGEX_PARAMETER = 5;

/** Messages whose words one statement reads, but those of at least one rollout. */
const MAX_MESSAGES = 20_000;

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
  /** Rollouts that were found; more than were read means that their messages reached the limit. */
  listed: number;
}

/**
 * The next rollouts, oldest first, and which of them may have a message that matches: one with words that contain the fragments, or one that is not indexed, or not wholly.
 * Plan: rollouts_run_seq_idx from the keyset's place; per rollout one probe of rollout_heads_pkey and an Index Scan of rollout_search_pkey (OFFSET 0 keeps it so);
 * per block of these one of rollout_search_blocks_block_idx. Words of messages are read only where those of their block contain the fragments: a fifth of the time.
 */
export async function selectRegexRollouts(pool: pg.Pool, page: RegexPage): Promise<RegexRollout[]> {
  const listed =
    page.runSeqs.length === 1
      ? `SELECT * FROM ${oldestOfRun('($1::int[])[1]', '$2::bigint', '$3')} r`
      : 'SELECT * FROM rollouts r WHERE r.run_seq = ANY($1::int[]) AND r.seq > $2::bigint ORDER BY r.seq LIMIT $3';
  const unsearched = 'EXISTS (SELECT FROM rollout_heads h WHERE h.seq = r.seq AND h.unsearched)';
  const contain = `words LIKE ALL($4::text[]) OR position('${PARTIAL_WORD}' IN words) > 0`;
  const words = 'r.seq IN (SELECT seq FROM matching)';
  const { rows } = await pool.query<RegexRollout>(
    `WITH listed AS MATERIALIZED (${listed}),
     page AS MATERIALIZED (SELECT * FROM (SELECT *, sum(messages) OVER (ORDER BY seq) - messages AS messages_before, count(*) OVER () AS listed FROM listed) l
       WHERE messages_before < ${MAX_MESSAGES}),
     placed AS MATERIALIZED (SELECT p.seq, s.block FROM page p CROSS JOIN LATERAL (SELECT block FROM rollout_search WHERE rollout_seq = p.seq OFFSET 0) s),
     likely AS MATERIALIZED (SELECT b.block FROM (SELECT DISTINCT block FROM placed) b CROSS JOIN LATERAL (
       SELECT array_to_string(w.words, ' ') AS words FROM rollout_search_blocks w WHERE w.block = b.block OFFSET 0) w WHERE ${contain}),
     matching AS MATERIALIZED (SELECT p.seq FROM (SELECT DISTINCT seq FROM placed WHERE block IN (SELECT block FROM likely)) p CROSS JOIN LATERAL (
       SELECT array_to_string(tsvector_to_array(words), ' ') AS words FROM rollout_search WHERE rollout_seq = p.seq OFFSET 0) s WHERE ${contain})
     SELECT r.seq::text, r.bytes::float8 AS bytes, r.listed::int AS listed, (${page.fragments.length === 0 ? '$4::text[] IS NOT NULL' : `(${unsearched} OR ${words})`}) AND (${page.where.sql}) AS candidate
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
