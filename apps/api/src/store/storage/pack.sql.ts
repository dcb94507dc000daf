import type pg from 'pg';
import { chunksText, type TranscriptChunk } from '@palestra/rollouts/transcript';
import { inTransaction } from '../../platform/database/transaction.ts';
import { declareObjects } from './garbage.sql.ts';

type Queryable = Pick<pg.Pool, 'query'>;

/**
 * Marks the packs with the transcripts of these rollouts, because they lose them in the transaction of `client`: their objects still have
 * the bytes. Locks the pointers first, so that no merge moves them meanwhile. Returns the ids of the packs. Plan: rollout_transcripts_pkey,
 * transcript_packs_pkey.
 */
export async function markPacksOf(client: Queryable, seqs: readonly string[]): Promise<string[]> {
  const { rows } = await client.query<{ pack: string }>(
    'SELECT pack FROM rollout_transcripts WHERE rollout_seq = ANY($1::bigint[]) ORDER BY rollout_seq FOR UPDATE',
    [seqs],
  );
  if (rows.length === 0) return [];
  const packs = [...new Set(rows.map(({ pack }) => pack))];
  await client.query(
    `UPDATE transcript_packs SET dirty_since = COALESCE(dirty_since, now()) WHERE id IN (
       SELECT id FROM transcript_packs WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE)`,
    [packs],
  );
  return packs;
}

/** Deletes those of these packs that have no transcript, and dooms their objects. Returns their keys. Plan: primary keys. */
export async function deleteEmptyPacks(client: Queryable, packs: readonly string[]): Promise<string[]> {
  if (packs.length === 0) return [];
  const { rows } = await client.query<{ blob_key: string }>(
    `DELETE FROM transcript_packs p WHERE p.id = ANY($1::bigint[]) AND NOT EXISTS (SELECT FROM rollout_transcripts t WHERE t.pack = p.id)
     RETURNING p.blob_key`,
    [packs],
  );
  const keys = rows.map(({ blob_key }) => blob_key);
  const doomed = keys.map((blob_key) => ({ blob_key, rollout_seq: '0' }));
  if (doomed.length > 0) await declareObjects(client, doomed, true);
  return keys;
}

export interface Pack {
  id: string;
  blob_key: string;
  org_id: string;
  run_seq: number | null;
  bytes: number;
}

/** Of `p`. Statements order by `p.id`: `id` alone would be the text. */
const PACK = 'p.id::text, blob_key, org_id, run_seq, bytes::float8 AS bytes';

/** Packs whose mark is older than `olderThanMs`, the oldest first. Plan: Index Scan using transcript_packs_dirty_idx. */
export async function selectDirtyPacks(pool: Queryable, olderThanMs: number, limit: number, without: readonly string[]): Promise<Pack[]> {
  const { rows } = await pool.query<Pack>(
    `SELECT ${PACK} FROM transcript_packs p WHERE dirty_since < now() - $1 * interval '1 ms' AND NOT id = ANY($3::bigint[])
     ORDER BY dirty_since, p.id LIMIT $2`,
    [olderThanMs, limit, without],
  );
  return rows;
}

/** Plan: transcript_packs_pkey. */
export async function hasPack(pool: Queryable, id: string): Promise<boolean> {
  return (await pool.query('SELECT FROM transcript_packs WHERE id = $1', [id])).rowCount === 1;
}

export interface MergeRule {
  /** A pack of at least this size is not merged. */
  targetBytes: number;
  /** Packs of about the same size that are merged. */
  factor: number;
  /** A run without a new pack for this long has its packs merged whatever their number. */
  quietMs: number;
  /** Ids of packs that are not merged, because they could not be copied. */
  without: readonly string[];
}

/** Small packs of one run; `size_class` null = of any size. Each class is `factor` times as large as the one below. */
export interface MergeablePacks {
  org_id: string;
  run_seq: number | null;
  size_class: number | null;
}

/** Small packs of which a copy is worth it, where `run` is true for a row `p`. */
const small = (run: string) =>
  `SELECT p.*, floor(ln(greatest(p.bytes, 4096)) / ln($2::float8))::int AS size_class FROM transcript_packs p
   WHERE ${run} AND p.bytes < $1 AND p.dirty_since IS NULL AND NOT p.id = ANY($3::bigint[])`;

/**
 * Runs with packs that are worth a merge: `factor` of one size class, so that a byte is copied some three times until its pack has the
 * target size; or all of a run that is quiet. Only runs with a pack whose `merge_due` is set are looked at: those that got a pack since they
 * were quiet. Plan: Index Only Scan using transcript_packs_merge_due_idx (partial); per run of it an Index Scan using transcript_packs_run_idx.
 */
export async function selectMergeable(pool: Queryable, { targetBytes, factor, quietMs, without }: MergeRule): Promise<MergeablePacks[]> {
  const { rows } = await pool.query<MergeablePacks>(
    `WITH due AS MATERIALIZED (SELECT DISTINCT org_id, run_seq FROM transcript_packs WHERE merge_due),
       small AS MATERIALIZED (SELECT s.* FROM due d CROSS JOIN LATERAL (
         ${small('p.org_id = d.org_id AND p.run_seq = d.run_seq')} UNION ALL ${small('p.org_id = d.org_id AND p.run_seq IS NULL AND d.run_seq IS NULL')} OFFSET 0) s),
       quiet AS (SELECT org_id, run_seq, count(*) AS n FROM small GROUP BY 1, 2 HAVING max(created_at) < now() - $4 * interval '1 ms')
     SELECT org_id, run_seq, NULL::int AS size_class FROM quiet WHERE n > 1
     UNION ALL SELECT org_id, run_seq, size_class FROM small GROUP BY 1, 2, 3 HAVING count(*) >= $2`,
    [targetBytes, factor, without, quietMs],
  );
  return rows;
}

/** In the order of their ids, after `after`. Plan: Index Scan using transcript_packs_run_idx. */
export async function selectSmallPacks(
  pool: Queryable,
  { targetBytes, factor, without }: MergeRule,
  { org_id, run_seq, size_class }: MergeablePacks,
  after: string,
  limit: number,
): Promise<Pack[]> {
  const { rows } = await pool.query<Pack>(
    `SELECT ${PACK} FROM (${small(`p.org_id = $4 AND ${run_seq === null ? 'p.run_seq IS NULL AND $5::int IS NULL' : 'p.run_seq = $5'}`)}) p
     WHERE ($6::int IS NULL OR size_class = $6) AND p.id > $7 ORDER BY p.id LIMIT $8`,
    [targetBytes, factor, without, org_id, run_seq, size_class, after, limit],
  );
  return rows;
}

/**
 * Ends the look at runs that were quiet when a pass began, `agoMs` before now: after it they have no packs to merge, until they get another
 * one. Plan: transcript_packs_merge_due_idx (partial).
 */
export async function clearMergeDue(pool: Queryable, { quietMs, without }: MergeRule, agoMs: number): Promise<void> {
  await pool.query(
    `UPDATE transcript_packs SET merge_due = false
     WHERE merge_due AND created_at < now() - $1 * interval '1 ms' AND NOT id = ANY($2::bigint[])`,
    [quietMs + agoMs, without],
  );
}

/** Objects from before packs, which have no rollout ids in their lines. Plan: Index Scan using transcript_packs_old_idx (partial). */
export async function selectOldPacks(pool: Queryable, limit: number, without: readonly string[]): Promise<Pack[]> {
  const { rows } = await pool.query<Pack>(
    `SELECT ${PACK} FROM transcript_packs p WHERE blob_key LIKE 'orgs/%/rollouts/%' AND NOT id = ANY($2::bigint[]) ORDER BY p.id LIMIT $1`,
    [limit, without],
  );
  return rows;
}

/** A transcript in a pack. `at`: its first byte. */
export interface PackedTranscript {
  seq: string;
  id: string;
  pack: string;
  at: number;
  bytes: number;
  chunks: string;
}

/** Transcripts of these packs in the order of their bytes. Plan: rollout_transcripts_pack_idx, rollout_heads_pkey. */
export async function selectTranscriptsOf(pool: Queryable, packs: readonly string[]): Promise<PackedTranscript[]> {
  const { rows } = await pool.query<PackedTranscript>(
    `SELECT t.rollout_seq::text AS seq, h.id, t.pack::text, t.at::float8 AS at, t.bytes::float8 AS bytes, t.chunks
     FROM rollout_transcripts t JOIN rollout_heads h ON h.seq = t.rollout_seq WHERE t.pack = ANY($1::bigint[]) ORDER BY t.pack, t.at`,
    [packs],
  );
  return rows;
}

/** A transcript that was copied from `pack` to byte `at` of a new object. */
export interface CopiedTranscript {
  seq: string;
  pack: string;
  at: number;
  bytes: number;
  chunks: TranscriptChunk[];
}

/**
 * Points the copied transcripts to the new object and dooms the old ones, in one transaction. A transcript that was erased or sealed again
 * meanwhile keeps out: the new pack is marked then. Files of the lake name packs, so the runs get a new version. Returns the keys of the doomed objects; null if the new object was doomed meanwhile,
 * and nothing changed. Plan: primary keys.
 */
export function commitMerge(
  pool: pg.Pool,
  merged: { blob_key: string; org_id: string; run_seq: number | null; bytes: number },
  copied: readonly CopiedTranscript[],
  old: readonly Pack[],
): Promise<string[] | null> {
  return inTransaction(pool, async (client) => {
    const kept = await client.query('DELETE FROM rollout_garbage WHERE blob_key = $1 AND NOT doomed', [merged.blob_key]);
    if (kept.rowCount === 0) return null;
    const { rows: created } = await client.query<{ id: string }>(
      'INSERT INTO transcript_packs (blob_key, org_id, run_seq, bytes) VALUES ($1, $2, $3, $4) RETURNING id::text',
      [merged.blob_key, merged.org_id, merged.run_seq, merged.bytes],
    );
    const pack = created[0]!.id;
    // Before the transcripts, as erasing locks them.
    await client.query(
      `UPDATE runs SET version = version + 1 WHERE seq IN (SELECT seq FROM runs WHERE seq IN (
         SELECT run_seq FROM rollout_heads WHERE seq = ANY($1::bigint[])) ORDER BY seq FOR UPDATE)`,
      [copied.map(({ seq }) => seq)],
    );
    // Locked in the order of erasing and sealing.
    await client.query('SELECT FROM rollout_transcripts WHERE rollout_seq = ANY($1::bigint[]) ORDER BY rollout_seq FOR UPDATE', [
      copied.map(({ seq }) => seq),
    ]);
    const moved = await client.query(
      `UPDATE rollout_transcripts t SET pack = $1, at = c.at, bytes = c.bytes, chunks = c.chunks
       FROM jsonb_to_recordset($2::jsonb) AS c(seq bigint, pack bigint, at bigint, bytes bigint, chunks text)
       WHERE t.rollout_seq = c.seq AND t.pack = c.pack`,
      [pack, JSON.stringify(copied.map((transcript) => ({ ...transcript, chunks: chunksText(transcript.chunks) })))],
    );
    if (moved.rowCount! < copied.length) await client.query('UPDATE transcript_packs SET dirty_since = now() WHERE id = $1', [pack]);
    return deleteEmptyPacks(client, [...old.map(({ id }) => id), pack]);
  });
}
