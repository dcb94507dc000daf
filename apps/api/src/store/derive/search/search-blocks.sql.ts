import type pg from 'pg';

/**
 * Blocks of messages (ADR 14): `run_seq << 32 | number`. `rollout_search_blocks` has the words of each block, in several rows while it is filled. Its words may be more than
 * those of its messages, never less; marked blocks are collected again.
 */

/** Of these blocks and those before them: full ones that have several rows. Plan: rollout_search_runs_pkey, rollout_search_blocks_block_idx. */
export async function markFullBlocks(pool: pg.Pool, blocks: readonly string[]): Promise<void> {
  if (blocks.length === 0) return;
  await pool.query({
    name: 'rollouts-search-full',
    text: `INSERT INTO rollout_search_marks (block)
      SELECT DISTINCT b.block FROM (SELECT block - back AS block FROM unnest($1::bigint[]) AS t(block), generate_series(0, 1) AS back) b
      JOIN rollout_search_runs r ON r.run_seq = b.block >> 32
      WHERE b.block & 4294967295 < r.units / 256 AND (SELECT count(*) FROM rollout_search_blocks w WHERE w.block = b.block) > 1 ORDER BY b.block ON CONFLICT DO NOTHING`,
    values: [blocks],
  });
}

/** The first marked blocks, except `without`. Plan: rollout_search_marks_pkey. */
export async function selectMarkedBlocks(pool: pg.Pool, limit: number, without: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query<{ block: string }>({
    name: 'rollouts-search-marked',
    text: 'SELECT block::text FROM rollout_search_marks m WHERE NOT m.block = ANY($2::bigint[]) ORDER BY m.block LIMIT $1',
    values: [limit, without],
  });
  return rows.map(({ block }) => block);
}

/**
 * Collects the words of these blocks again, if they are still marked, and returns their number. Skips blocks that another process holds. Plan:
 * rollout_search_marks_pkey, rollout_search_block_idx, rollout_search_blocks_block_idx.
 */
export async function collectBlocks(pool: pg.Pool, blocks: readonly string[]): Promise<number> {
  if (blocks.length === 0) return 0;
  const { rows } = await pool.query<{ blocks: number }>({
    name: 'rollouts-search-collect',
    text: `WITH mark AS MATERIALIZED (
        DELETE FROM rollout_search_marks WHERE block = ANY(ARRAY(SELECT block FROM rollout_search_marks WHERE block = ANY($1::bigint[]) ORDER BY block FOR UPDATE SKIP LOCKED)) RETURNING block
      ), old AS (
        DELETE FROM rollout_search_blocks WHERE block = ANY(ARRAY(SELECT block FROM mark))
      ), fresh AS (
        INSERT INTO rollout_search_blocks (block, words)
        SELECT s.block, array_agg(DISTINCT one.word) FROM rollout_search s, unnest(tsvector_to_array(s.words)) AS one(word)
        WHERE s.block = ANY(ARRAY(SELECT block FROM mark)) GROUP BY s.block ORDER BY s.block
      ) SELECT count(*)::int AS blocks FROM mark`,
    values: [blocks],
  });
  return rows[0]!.blocks;
}
