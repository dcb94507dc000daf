import type pg from 'pg';
import { runsQuery } from '../../rollouts/rollout-query.ts';
import { foundBy, plainWords } from '../../store/derive/search/search-index.sql.ts';

export interface HitRow {
  seq: string;
  index: number;
  id: string;
  day: string;
  sealed: boolean;
  /** All of its messages are in a transcript. */
  packed: boolean;
  run_id: string;
  run_name: string;
  rollout_name: string | null;
  step: number | null;
  reward: number | null;
}

/** A message in the search index: block, rollout and index. */
export interface HitPosition {
  block: string;
  seq: string;
  index: number;
}

/** The number of the first parameter of the query. */
export const FIRST_SEARCH_PARAMETER = 7;

const MATCHES = foundBy('$1::tsquery', `phraseto_tsquery('simple', ${plainWords('$2')})`);
const HEAD =
  'h.day::text, h.sealed_at IS NOT NULL AS sealed, h.sealed_at IS NOT NULL AND NOT h.unsealed AS packed, u.id AS run_id, u.name AS run_name, m.rollout_name';
const NAMES = 'JOIN rollout_heads h ON h.seq = r.seq JOIN runs u ON u.seq = r.run_seq LEFT JOIN rollout_meta m ON m.rollout_seq = r.seq';

export interface SearchedText {
  runSeqs: readonly number[];
  text: string;
}

/**
 * Messages of these blocks that contain the text, by block, rollout and index. `$1`: the index words of the runs, without which a search would
 * find messages of other organisations. Plan: per block an Index Scan of rollout_search_block_idx; OFFSET 0 keeps the planner from using the words.
 */
export function hitsSql(where: string | null): string {
  return `SELECT s.block::text, s.rollout_seq::text AS seq, s.index FROM unnest($3::bigint[]) AS b(block)
      CROSS JOIN LATERAL (SELECT m.block, m.rollout_seq, m.index, m.words FROM rollout_search m WHERE m.block = b.block OFFSET 0) s
      ${where === null ? '' : 'JOIN rollouts r ON r.seq = s.rollout_seq'}
    WHERE ${MATCHES} AND (s.block, s.rollout_seq, s.index) > ($4::bigint, $5::bigint, $6::int) ${where === null ? '' : `AND (${where})`}
    ORDER BY s.block, s.rollout_seq, s.index`;
}

/** `where`: a condition on `r`, with parameters from `FIRST_SEARCH_PARAMETER` on. */
export async function selectHits(
  pool: pg.Pool,
  { runSeqs, text, where }: SearchedText & { where?: { sql: string; values: readonly unknown[] } },
  blocks: readonly string[],
  after: HitPosition | null,
): Promise<HitPosition[]> {
  const { rows } = await pool.query<HitPosition>(hitsSql(where?.sql ?? null), [
    runsQuery(runSeqs),
    text,
    blocks,
    after?.block ?? '0',
    after?.seq ?? '0',
    after?.index ?? 0,
    ...(where?.values ?? []),
  ]);
  return rows;
}

/** Hits by step. Plan: one probe of rollouts_pkey per rollout. */
export async function countSteps(pool: pg.Pool, hits: readonly HitPosition[]): Promise<{ step: number; hits: number }[]> {
  const { rows } = await pool.query<{ step: number; hits: number }>(
    `SELECT COALESCE(r.step, -1) AS step, sum(f.hits)::int AS hits FROM (SELECT seq, count(*) AS hits FROM unnest($1::bigint[]) AS t(seq) GROUP BY seq) f
     JOIN rollouts r ON r.seq = f.seq GROUP BY 1 ORDER BY 1`,
    [hits.map(({ seq }) => seq)],
  );
  return rows;
}

/** The rollouts of hits. Plan: rollouts_pkey. */
export async function selectHitHeads(pool: pg.Pool, seqs: readonly string[]): Promise<Map<string, Omit<HitRow, 'index'>>> {
  const { rows } = await pool.query<Omit<HitRow, 'index'>>(
    `SELECT r.seq::text AS seq, r.id, r.step, r.reward, ${HEAD} FROM rollouts r ${NAMES} WHERE r.seq = ANY($1::bigint[])`,
    [seqs],
  );
  return new Map(rows.map((row) => [row.seq, row]));
}

/** Whether messages of these runs are not indexed yet. Plan: one probe of rollout_heads_unsearched_idx (partial) a run. */
export async function hasUnsearched(pool: pg.Pool, runSeqs: readonly number[]): Promise<boolean> {
  const { rows } = await pool.query<{ waits: boolean }>(
    'SELECT EXISTS (SELECT FROM rollout_heads WHERE unsearched AND run_seq = ANY($1::int[])) AS waits',
    [runSeqs],
  );
  return rows[0]!.waits;
}

/** Runs of an organisation, newest activity first. Plan: runs_org_id_updated_at_id_idx. */
export async function selectRunSeqs(pool: pg.Pool, orgId: string, limit: number): Promise<number[]> {
  const { rows } = await pool.query<{ seq: number }>(
    'SELECT seq FROM runs WHERE org_id = $1 AND deleted_at IS NULL ORDER BY updated_at DESC, id DESC LIMIT $2',
    [orgId, limit],
  );
  return rows.map(({ seq }) => seq);
}
