/**
 * Marks the blocks of `gone`, rows that the statement deletes: words of erased messages must not stay. It locks marks that are there, so that `collectBlocks` (derive/search/search-blocks.sql.ts)
 * does not take one before the deletion is committed.
 */
export const MARK_BLOCKS_OF_GONE = `INSERT INTO rollout_search_marks (block) SELECT DISTINCT block FROM gone ORDER BY block ON CONFLICT (block) DO UPDATE SET block = excluded.block`;
