import { createHash } from 'node:crypto';
import type pg from 'pg';

/** `seq` of the run with that name, created if it is missing. The second statement runs only for a new name. */
export async function ensureRun(pool: pg.Pool, orgId: string, name: string): Promise<number> {
  const hash = createHash('sha256').update(name).digest();
  const found = await pool.query<{ seq: number }>('SELECT seq FROM runs WHERE org_id = $1 AND name_hash = $2', [orgId, hash]);
  if (found.rows[0]) return found.rows[0].seq;
  const created = await pool.query<{ seq: number }>(
    `INSERT INTO runs (org_id, name, name_hash) VALUES ($1, $2, $3)
     ON CONFLICT (org_id, name_hash) DO UPDATE SET updated_at = now() RETURNING seq`,
    [orgId, name, hash],
  );
  return created.rows[0]!.seq;
}
