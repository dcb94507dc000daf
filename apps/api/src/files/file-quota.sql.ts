import { isUuid } from '@palestra/kit';
import type pg from 'pg';
import { inTransaction } from '../platform/database/transaction.ts';

/** Reservations older than a day belong to a process that ended during the upload. */
const PENDING = `CASE WHEN pending_at > now() - interval '1 day' THEN pending ELSE 0 END`;
const USED = `SELECT coalesce(sum(bytes + ${PENDING}), 0)::float8 AS used FROM environment_files WHERE org_id = $1`;

/** Bytes of the organisation's files, with uploads in progress. Plan: Index Scan using environment_files_org_id_idx. */
export async function storedBytes(client: Pick<pg.Pool, 'query'>, orgId: string): Promise<number> {
  const { rows } = await client.query<{ used: number }>(USED, [orgId]);
  return rows[0]!.used;
}

/**
 * Reserves up to `wanted` bytes for an upload and returns the reserved number: all of them, or with `orLess` what is left; 0 = none.
 * Uploads of one organisation reserve one after another.
 */
export function reserveBytes(
  pool: pg.Pool,
  upload: { key: string; orgId: string; wanted: number; orLess: boolean },
  quota: number,
): Promise<number> {
  const { key, orgId, wanted, orLess } = upload;
  return inTransaction(pool, async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('environment_files:' || $1::text, 0))`, [orgId]);
    const left = Math.max(0, quota - (await storedBytes(client, orgId)));
    if (wanted > left && !orLess) return 0;
    const granted = Math.min(wanted, left);
    await client.query(
      `INSERT INTO environment_files AS f (key, org_id, pending, pending_at) VALUES ($1, $2, $3, now())
       ON CONFLICT (key) DO UPDATE SET pending = ${PENDING.replaceAll('pending', 'f.pending')} + excluded.pending, pending_at = now()`,
      [key, orgId, granted],
    );
    return granted;
  });
}

/**
 * Releases a reservation after an upload ended or failed, and stores the present size of the file, from `sizeOf`; null = no file. A lock of
 * the key makes the last of several uploads of one file store the final size.
 */
export function settleBytes(
  pool: pg.Pool,
  { key, orgId, granted }: { key: string; orgId: string; granted: number },
  sizeOf: () => Promise<number | null>,
): Promise<void> {
  return inTransaction(pool, async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('environment_file:' || $1::text, 0))`, [key]);
    await client.query(
      `INSERT INTO environment_files AS f (key, org_id, bytes) VALUES ($1, $2, $4)
       ON CONFLICT (key) DO UPDATE SET pending = greatest(0, f.pending - $3::bigint), bytes = excluded.bytes`,
      [key, orgId, granted, (await sizeOf()) ?? 0],
    );
    await client.query('DELETE FROM environment_files WHERE key = $1 AND bytes = 0 AND pending = 0', [key]);
  });
}

/**
 * Releases the bytes of a deleted file, or of all files whose keys begin with `key` if it ends with a slash. Uploads in progress still
 * count.
 */
export async function forgetBytes(pool: pg.Pool, key: string): Promise<void> {
  const deleted = `(key = $1::text OR (right($1::text, 1) = '/' AND starts_with(key, $1::text)))`;
  await pool.query(`UPDATE environment_files SET bytes = 0 WHERE ${deleted}`, [key]);
  await pool.query(`DELETE FROM environment_files WHERE ${deleted} AND ${PENDING} = 0`, [key]);
}

/** The organisation whose environment has the object; null when the environment no longer exists. Plan: primary key. */
export async function ownerOfObject(pool: pg.Pool, key: string): Promise<string | null> {
  const id = /^environments\/([0-9a-f-]{36})\//i.exec(key)?.[1];
  if (id === undefined || !isUuid(id)) return null;
  const { rows } = await pool.query<{ org_id: string | null }>('SELECT org_id FROM environments WHERE id = $1', [id]);
  return rows[0]?.org_id ?? null;
}
