import type { ExportFigures, ReviewOrigin } from '@palestra/exports';
import type { CreateRolloutExport } from '@palestra/protocol';
import type pg from 'pg';
import type { ExportCursor } from './rollout-export.source.ts';

/** The request in the form in which it runs: names replaced by keys, the query in canonical form. */
export interface ExportRequest extends Omit<CreateRolloutExport, 'run' | 'queue' | 'as_of'> {
  canonical_query: string;
  run_name: string | null;
  /** Keys of `run`, or of all runs. */
  run_seqs: number[];
  org_name: string;
  /** The queue of a review; null, or absent in older requests: rollouts of the query. */
  review?: Omit<ReviewOrigin, 'answers'> | null;
}

export interface ExportFile {
  key: string;
  /** Name in a finished export; a shard's name depends on their number. */
  name: string | null;
  rows: number;
  size: number;
}

/** State to continue an export after its last finished file. */
export interface ExportProgress {
  /** Lease of the process that writes it. */
  lease: string;
  position: ExportCursor | null;
  figures: ExportFigures;
  /** Rows that are in no file because they have no use for training. */
  skipped: number;
  /** Ids of rollouts that are in no file, because their messages are too large. */
  too_large: string[];
  /** Failures since the last finished file. */
  attempts: number;
  /** ISO 8601; no attempt before this time. */
  not_before: string | null;
}

export interface ExportRow {
  id: string;
  org_id: string;
  run_seq: number | null;
  /** `pending`, `running`, `complete`, `failed`. */
  state: string;
  request: ExportRequest;
  as_of_seq: string;
  cursor: ExportProgress | null;
  files: ExportFile[];
  total: string | null;
  written: string;
  bytes: string;
  error: string | null;
  author: string;
  created_at: Date;
  updated_at: Date;
  finished_at: Date | null;
}

const COLUMNS = `id, org_id, run_seq, state, request, as_of_seq::text, cursor, files, total::text, written::text, bytes::text, error, author, created_at,
  updated_at, finished_at`;
type Queryable = Pick<pg.Pool, 'query'>;

export async function insertExport(
  pool: Queryable,
  row: Pick<ExportRow, 'org_id' | 'run_seq' | 'request' | 'as_of_seq' | 'author'>,
): Promise<ExportRow> {
  const { rows } = await pool.query<ExportRow>(
    `INSERT INTO rollout_exports (org_id, run_seq, state, request, as_of_seq, author) VALUES ($1, $2, 'pending', $3, $4, $5) RETURNING ${COLUMNS}`,
    [row.org_id, row.run_seq, JSON.stringify(row.request), row.as_of_seq, row.author],
  );
  return rows[0]!;
}

/** Newest first. Plan: Index Scan using rollout_exports_org_id_idx. */
export async function selectExports(pool: Queryable, orgId: string, limit: number): Promise<ExportRow[]> {
  const { rows } = await pool.query<ExportRow>(
    `SELECT ${COLUMNS} FROM rollout_exports WHERE org_id = $1 ORDER BY created_at DESC, id LIMIT $2`,
    [orgId, limit],
  );
  return rows;
}

/** Plan: primary key. */
export async function selectExport(pool: Queryable, orgId: string, id: string): Promise<ExportRow | null> {
  const { rows } = await pool.query<ExportRow>(`SELECT ${COLUMNS} FROM rollout_exports WHERE id = $1 AND org_id = $2`, [id, orgId]);
  return rows[0] ?? null;
}

export async function countActive(pool: Queryable, orgId: string): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM rollout_exports WHERE org_id = $1 AND state IN ('pending', 'running')`,
    [orgId],
  );
  return rows[0]!.n;
}

/** False when it did not exist. */
export async function deleteExport(pool: Queryable, orgId: string, id: string): Promise<boolean> {
  const { rowCount } = await pool.query('DELETE FROM rollout_exports WHERE id = $1 AND org_id = $2', [id, orgId]);
  return rowCount === 1;
}

/** `$1`: a running export without a heartbeat for this many milliseconds is lost. */
const LOST = `state = 'running' AND updated_at < now() - $1 * interval '1 ms'`;
/** Only one export of an organisation is written at a time, so that it cannot take all writers. */
const WAITING = `(state = 'pending' AND COALESCE((cursor->>'not_before')::timestamptz, '-infinity') <= now() OR ${LOST})
          AND NOT EXISTS (SELECT FROM rollout_exports o WHERE o.org_id = e.org_id AND o.id <> e.id
            AND o.state = 'running' AND o.updated_at >= now() - $1 * interval '1 ms')`;

/** Whether `claimExport` would find one. */
export async function anyWaiting(pool: Queryable, lostAfterMs: number): Promise<boolean> {
  const { rows } = await pool.query<{ waiting: boolean }>(`SELECT EXISTS (SELECT FROM rollout_exports e WHERE ${WAITING}) AS waiting`, [
    lostAfterMs,
  ]);
  return rows[0]!.waiting;
}

/**
 * Claims the export that has waited longest: a new one, one that yielded, or one without a heartbeat for `lostAfterMs`. Then only the
 * holder of `lease` can change it. Two exports claimed at the same moment may be of one organisation. Plan: a scan of a small table, row
 * locks skipped.
 */
export async function claimExport(pool: Queryable, lease: string, lostAfterMs: number): Promise<ExportRow | null> {
  const { rows } = await pool.query<ExportRow>(
    `UPDATE rollout_exports SET state = 'running', updated_at = now(), cursor = COALESCE(cursor, '{}') || jsonb_build_object('lease', $2::text)
     WHERE id = (
       SELECT id FROM rollout_exports e
       WHERE ${WAITING}
       ORDER BY updated_at LIMIT 1 FOR UPDATE SKIP LOCKED)
     RETURNING ${COLUMNS}`,
    [lostAfterMs, lease],
  );
  return rows[0] ?? null;
}

/** Whether another organisation waits while all writers may be busy. */
export async function othersWait(pool: Queryable, orgId: string, lostAfterMs: number): Promise<boolean> {
  const { rows } = await pool.query<{ waiting: boolean }>(
    `SELECT EXISTS (SELECT FROM rollout_exports e WHERE org_id <> $2 AND ${WAITING}) AS waiting`,
    [lostAfterMs, orgId],
  );
  return rows[0]!.waiting;
}

/** Stores changes and the heartbeat. False when this process no longer owns the export: it was cancelled, or taken over. */
export async function saveExport(
  pool: Queryable,
  id: string,
  lease: string,
  change: Partial<Pick<ExportRow, 'state' | 'cursor' | 'files' | 'total' | 'written' | 'bytes' | 'error'>> = {},
): Promise<boolean> {
  const values: unknown[] = [id, lease];
  const sets = Object.entries(change).map(([column, value]) => {
    values.push(column === 'cursor' || column === 'files' ? JSON.stringify(value) : value);
    return `${column} = $${values.length}`;
  });
  if (change.state === 'complete' || change.state === 'failed') sets.push('finished_at = now()');
  const { rowCount } = await pool.query(
    `UPDATE rollout_exports SET ${[...sets, 'updated_at = now()'].join(', ')} WHERE id = $1 AND state = 'running' AND cursor->>'lease' = $2`,
    values,
  );
  return rowCount === 1;
}

/** Runs of an organisation, ascending: one, or with null all that are not being erased. */
export async function selectExportedRuns(pool: Queryable, orgId: string, seq: number | null): Promise<{ seq: number; name: string }[]> {
  const { rows } = await pool.query<{ seq: number; name: string }>(
    'SELECT seq, name FROM runs WHERE org_id = $1 AND deleted_at IS NULL AND ($2::int IS NULL OR seq = $2) ORDER BY seq',
    [orgId, seq],
  );
  return rows;
}
