import { LAKE_PART_PLACES } from '@palestra/exports';
import type pg from 'pg';

type Queryable = Pick<pg.Pool, 'query'>;

export interface LakeRun {
  seq: number;
  id: string;
  name: string;
  org_id: string;
  org: string;
  version: string;
}

/**
 * Runs whose files may be outdated: they changed since the last check, or had unsealed rollouts then. The checks of a run take at most a
 * twentieth of the time. Plan: a scan of runs, which are few; lake_runs_pkey.
 */
export async function selectLakeRuns(pool: Queryable): Promise<LakeRun[]> {
  const { rows } = await pool.query<LakeRun>(
    `SELECT r.seq, r.id, r.name, r.org_id, o.name AS org, r.version::text FROM runs r JOIN organisations o ON o.id = r.org_id
       LEFT JOIN lake_runs l ON l.run_seq = r.seq
     WHERE r.deleted_at IS NULL AND (l.run_seq IS NULL OR ((l.version <> r.version OR l.unsealed) AND l.looked_at < now() - l.took_ms * interval '20 ms'))
     ORDER BY r.seq`,
  );
  return rows;
}

/** Plan: primary key. */
export async function saveCheck(pool: Queryable, run: LakeRun, unsealed: boolean, tookMs: number): Promise<void> {
  await pool.query(
    `INSERT INTO lake_runs (run_seq, version, unsealed, took_ms) VALUES ($1, $2, $3, $4)
     ON CONFLICT (run_seq) DO UPDATE SET version = excluded.version, unsealed = excluded.unsealed, took_ms = excluded.took_ms, looked_at = now()`,
    [run.seq, run.version, unsealed, Math.round(tookMs)],
  );
}

/** Plan: Index Scan using rollout_heads_run_seq_idx, up to the first. */
export async function hasUnsealed(pool: Queryable, runSeq: number): Promise<boolean> {
  const { rows } = await pool.query<{ found: boolean }>(
    'SELECT EXISTS (SELECT FROM rollout_heads WHERE run_seq = $1 AND unsealed) AS found',
    [runSeq],
  );
  return rows[0]!.found;
}

/** Present and written fingerprint of a file; null where there is none. */
export interface LakePart {
  step: number;
  part: number;
  wanted: string | null;
  rows: number;
  written: string | null;
  blob_key: string | null;
}

/**
 * The files that a run should have, by its sealed rollouts, and those that it has. Plan: Index Scan using rollouts_run_seq_idx, hash joins
 * with rollout_heads and rollout_transcripts, HashAggregate; lake_parts_pkey.
 */
export async function selectParts(pool: Queryable, runSeq: number, withMessages: boolean): Promise<LakePart[]> {
  const { rows } = await pool.query<LakePart>(
    `SELECT step, part, f.fingerprint AS wanted, COALESCE(f.rows, 0) AS rows, p.fingerprint AS written, p.blob_key
     FROM (
       SELECT COALESCE(r.step, -1) AS step, (r.seq / ${LAKE_PART_PLACES})::int AS part, count(*)::int AS rows,
         $2::text || sum(hashtextextended(concat_ws(':', r.seq, r.revision, r.provenance, r.group_key, r.sample_idx, h.verdict, r.latency_ms,
           r.normaliser, t.pack), 0)::numeric)::text AS fingerprint
       FROM rollouts r JOIN rollout_heads h ON h.seq = r.seq JOIN rollout_transcripts t ON t.rollout_seq = r.seq WHERE r.run_seq = $1 GROUP BY 1, 2
     ) f FULL JOIN (SELECT * FROM lake_parts WHERE run_seq = $1) p USING (step, part) ORDER BY step, part`,
    [runSeq, withMessages ? 'messages:' : 'index:'],
  );
  return rows;
}

export async function savePart(
  pool: Queryable,
  part: { runSeq: number; step: number; part: number; key: string; fingerprint: string; rows: number; bytes: number },
): Promise<void> {
  await pool.query(
    `INSERT INTO lake_parts (run_seq, step, part, blob_key, fingerprint, rows, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (run_seq, step, part) DO UPDATE SET blob_key = excluded.blob_key, fingerprint = excluded.fingerprint, rows = excluded.rows,
       bytes = excluded.bytes, written_at = now()`,
    [part.runSeq, part.step, part.part, part.key, part.fingerprint, part.rows, part.bytes],
  );
}

export async function deletePart(pool: Queryable, runSeq: number, { step, part }: Pick<LakePart, 'step' | 'part'>): Promise<void> {
  await pool.query('DELETE FROM lake_parts WHERE run_seq = $1 AND step = $2 AND part = $3', [runSeq, step, part]);
}

export interface OrphanedPart {
  run_seq: number;
  step: number;
  part: number;
  blob_key: string;
}

/** Files of deleted runs whose rows still exist, for a minute at least. Plan: runs_deleted_idx (partial), lake_parts_pkey. */
export async function selectPartsOfDeleted(pool: Queryable, limit: number): Promise<OrphanedPart[]> {
  const { rows } = await pool.query<OrphanedPart>(
    `SELECT p.run_seq, p.step, p.part, p.blob_key FROM runs r JOIN lake_parts p ON p.run_seq = r.seq WHERE r.deleted_at IS NOT NULL LIMIT $1`,
    [limit],
  );
  return rows;
}

/** Files of runs that are erased or being erased. Plan: a scan of all files. */
export async function selectOrphanedParts(pool: Queryable, limit: number): Promise<OrphanedPart[]> {
  const { rows } = await pool.query<OrphanedPart>(
    `SELECT p.run_seq, p.step, p.part, p.blob_key FROM lake_parts p
     WHERE NOT EXISTS (SELECT FROM runs r WHERE r.seq = p.run_seq AND r.deleted_at IS NULL) LIMIT $1`,
    [limit],
  );
  return rows;
}

/** Plan: a scan of lake_runs. */
export async function deleteOrphanedRuns(pool: Queryable): Promise<void> {
  await pool.query('DELETE FROM lake_runs l WHERE NOT EXISTS (SELECT FROM runs r WHERE r.seq = l.run_seq)');
}

/** A page of the sealed rollouts of one file. Plan: Index Scan using rollouts_run_step_idx from the last row; rollout_transcripts_pkey. */
export async function selectPartSeqs(
  pool: Queryable,
  { runSeq, step, part, after, limit }: { runSeq: number; step: number; part: number; after: string; limit: number },
): Promise<{ seq: string; blob_key: string }[]> {
  const { rows } = await pool.query<{ seq: string; blob_key: string }>({
    name: 'lake-part-seqs',
    text: `SELECT r.seq::text, p.blob_key FROM rollouts r JOIN rollout_transcripts t ON t.rollout_seq = r.seq JOIN transcript_packs p ON p.id = t.pack
      WHERE r.run_seq = $1 AND COALESCE(r.step, -1) = $2 AND r.seq > $4 AND r.seq >= $3::bigint * ${LAKE_PART_PLACES} AND r.seq < ($3::bigint + 1) * ${LAKE_PART_PLACES}
      ORDER BY r.seq LIMIT $5`,
    values: [runSeq, step, part, after, limit],
  });
  return rows;
}
