import type pg from 'pg';
import { foundBy, plainWords } from '../../store/derive/search/search-index.sql.ts';

export interface HitRow {
  seq: string;
  index: number;
  id: string;
  day: string;
  sealed: boolean;
  run_id: string;
  run_name: string;
  rollout_name: string | null;
  step: number | null;
  reward: number | null;
}

/** Parameters before those of the query. */
export const FIRST_SEARCH_PARAMETER = 6;

const MATCHES = foundBy('$1::tsquery', `phraseto_tsquery('simple', ${plainWords('$2')})`);
const HEAD = 'h.day::text, h.sealed_at IS NOT NULL AS sealed, u.id AS run_id, u.name AS run_name, m.rollout_name';
const NAMES = 'JOIN rollout_heads h ON h.seq = r.seq JOIN runs u ON u.seq = r.run_seq LEFT JOIN rollout_meta m ON m.rollout_seq = r.seq';

/**
 * Messages in which the words stand, oldest rollout first. `$1`: the words that stand for the runs (search-index.sql.ts), without which a search
 * would see other organisations. Plan: Bitmap Index Scan of rollout_search_words_idx when they are rare, Index Scan of rollout_search_pkey from the keyset's place when
 * they are everywhere; one probe of rollouts_pkey a hit.
 */
export function searchSql(where: string | null): string {
  return `SELECT f.seq::text AS seq, f.index, r.id, r.step, r.reward, ${HEAD} FROM (
      SELECT s.rollout_seq AS seq, s.index FROM rollout_search s ${where === null ? '' : 'JOIN rollouts r ON r.seq = s.rollout_seq'}
      WHERE ${MATCHES} AND ($3::bigint IS NULL OR (s.rollout_seq, s.index) > ($3, $4::int)) ${where === null ? '' : `AND (${where})`}
      ORDER BY s.rollout_seq, s.index LIMIT $5) f
    JOIN rollouts r ON r.seq = f.seq ${NAMES} WHERE u.deleted_at IS NULL ORDER BY f.seq, f.index`;
}

export interface SearchPage {
  /** A `tsquery` of the words of the runs. */
  runs: string;
  text: string;
  after: { seq: string; index: string } | null;
  limit: number;
  where?: { sql: string; values: readonly unknown[] };
}

export async function selectHits(pool: pg.Pool, page: SearchPage): Promise<HitRow[]> {
  const values = [page.runs, page.text, page.after?.seq ?? null, page.after?.index ?? null, page.limit];
  const { rows } = await pool.query<HitRow>(searchSql(page.where?.sql ?? null), [...values, ...(page.where?.values ?? [])]);
  return rows;
}

/** Hits by step, of `limit` messages at most. Plan: as above, without an order; one probe of rollouts_pkey a hit. */
export async function countHits(pool: pg.Pool, page: Omit<SearchPage, 'after'>): Promise<{ step: number; hits: number }[]> {
  const { rows } = await pool.query<{ step: number; hits: number }>(
    `SELECT (SELECT COALESCE(r.step, -1) FROM rollouts r WHERE r.seq = f.seq) AS step, count(*)::int AS hits FROM (
       SELECT s.rollout_seq AS seq FROM rollout_search s ${page.where ? 'JOIN rollouts r ON r.seq = s.rollout_seq' : ''}
       WHERE ${MATCHES} AND $3::bigint IS NULL AND $4::int IS NULL ${page.where ? `AND (${page.where.sql})` : ''} LIMIT $5) f
     GROUP BY 1 ORDER BY 1`,
    [page.runs, page.text, null, null, page.limit, ...(page.where?.values ?? [])],
  );
  return rows;
}

/** What a hit says of its rollout. Plan: rollouts_pkey. */
export async function selectHitHeads(pool: pg.Pool, seqs: readonly string[]): Promise<Map<string, Omit<HitRow, 'index'>>> {
  const { rows } = await pool.query<Omit<HitRow, 'index'>>(
    `SELECT r.seq::text AS seq, r.id, r.step, r.reward, ${HEAD} FROM rollouts r ${NAMES} WHERE r.seq = ANY($1::bigint[])`,
    [seqs],
  );
  return new Map(rows.map((row) => [row.seq, row]));
}

/** Whether messages of these runs wait to be made searchable. Plan: rollout_heads_unsearched_idx, partial and short-lived. */
export async function hasUnsearched(pool: pg.Pool, runSeqs: readonly number[]): Promise<boolean> {
  const { rows } = await pool.query<{ waits: boolean }>(
    'SELECT EXISTS (SELECT FROM (SELECT run_seq FROM rollout_heads WHERE unsearched AND run_seq IS NOT NULL ORDER BY seq LIMIT 5000) h WHERE run_seq = ANY($1::int[])) AS waits',
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
