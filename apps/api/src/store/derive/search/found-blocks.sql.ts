import type pg from 'pg';
import { foundBy, plainWords, runWord } from './search-index.sql.ts';

/**
 * Blocks from a block on that contain all words of the text, one of the runs and one of the types, and their number. `$1`, `$5`: the index words of the
 * runs and of the types (search-index.sql.ts). Plan: Bitmap Index Scan of rollout_search_blocks_words_idx; no other index has the words.
 */
export const BLOCKS = `
WITH word AS MATERIALIZED (SELECT tsvector_to_array(to_tsvector('simple', ${plainWords('$2')})) AS words),
found AS MATERIALIZED (
  SELECT b.block FROM rollout_search_blocks b WHERE b.words && $1::text[] AND b.words @> (SELECT words FROM word) AND cardinality((SELECT words FROM word)) > 0
    AND ($5::text[] IS NULL OR b.words && $5)
)
SELECT block::text, count(*) OVER ()::int AS blocks FROM found WHERE block >= $3 GROUP BY block ORDER BY found.block LIMIT $4`;

export interface BlockFilter {
  runSeqs: readonly number[];
  text: string;
  /** Index words of the types of messages; absent = all. */
  types?: readonly string[] | null;
}

/** The first blocks whose messages can contain the text, and the number of all such blocks. */
export async function selectBlocks(
  pool: pg.Pool,
  { runSeqs, text, types }: BlockFilter,
  from: string,
  limit: number,
): Promise<{ blocks: string[]; total: number }> {
  const { rows } = await pool.query<{ block: string; blocks: number }>(BLOCKS, [runSeqs.map(runWord), text, from, limit, types ?? null]);
  return { blocks: rows.map(({ block }) => block), total: rows[0]?.blocks ?? 0 };
}

/** Rollouts with a message in these blocks that contains the text and the marks, a `tsquery`. Plan: per block an Index Scan of rollout_search_block_idx. */
export async function selectRolloutsIn(pool: pg.Pool, blocks: readonly string[], text: string, marks: string): Promise<string[]> {
  const found = foundBy('$2::tsquery', `phraseto_tsquery('simple', ${plainWords('$3')})`);
  const { rows } = await pool.query<{ seq: string }>(
    `SELECT DISTINCT s.rollout_seq::text AS seq FROM unnest($1::bigint[]) AS b(block)
       CROSS JOIN LATERAL (SELECT m.rollout_seq, m.words FROM rollout_search m WHERE m.block = b.block OFFSET 0) s WHERE ${found}`,
    [blocks, marks, text],
  );
  return rows.map(({ seq }) => seq);
}
