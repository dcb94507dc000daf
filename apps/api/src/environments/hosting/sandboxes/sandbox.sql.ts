import type pg from 'pg';
import { inTransaction } from '../../../platform/database/transaction.ts';
import type { Limits } from '../../../platform/limits.ts';
import { limitError } from '../../../platform/limits.ts';

export interface StoredSandbox {
  sid: string;
  id: string;
  orgId: string;
  cpus: number;
  memoryMb: number;
}

const LOCK = `SELECT pg_advisory_xact_lock(hashtext('palestra sandboxes'), hashtext($1))`;
/** sandboxes_org_id_idx, then sessions_pkey for each. */
const USED = `
  SELECT count(*)::int AS count, coalesce(sum(b.cpus), 0) AS cpus, coalesce(sum(b.memory_mb), 0)::int AS memory_mb
  FROM sandboxes AS b JOIN sessions AS s ON s.sid = b.sid WHERE b.org_id = $1 AND s.ended_at IS NULL AND b.sid <> $2`;
const INSERT = `INSERT INTO sandboxes (sid, id, org_id, cpus, memory_mb) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (sid) DO NOTHING`;
const ENDED = `DELETE FROM sandboxes AS b WHERE NOT EXISTS (SELECT FROM sessions AS s WHERE s.sid = b.sid AND s.ended_at IS NULL)`;

/** Stores a sandbox that is about to start. Throws `limit_reached` when its organisation has its most. Processes decide one after another. */
export function insertSandbox(pool: pg.Pool, { sid, id, orgId, cpus, memoryMb }: StoredSandbox, limits: Limits): Promise<void> {
  return inTransaction(pool, async (client) => {
    await client.query(LOCK, [orgId]);
    const { rows } = await client.query<{ count: number; cpus: number; memory_mb: number }>(USED, [orgId, sid]);
    const used = rows[0]!;
    if (used.count >= limits.sandboxes.org) throw limitError('sandboxes', 'org', limits.sandboxes.org);
    if (used.cpus + cpus > limits.sandbox_cpus.org) throw limitError('sandbox_cpus', 'org', limits.sandbox_cpus.org);
    const most = limits.sandbox_memory_gb.org;
    if (used.memory_mb + memoryMb > most * 1_024) throw limitError('sandbox_memory_gb', 'org', most);
    await client.query(INSERT, [sid, id, orgId, cpus, memoryMb]);
  });
}

export async function deleteSandbox(pool: Pick<pg.Pool, 'query'>, id: string): Promise<void> {
  await pool.query('DELETE FROM sandboxes WHERE id = $1', [id]);
}

/** Ids of the sandboxes whose sessions live. Forgets the others. */
export async function selectLivingSandboxes(pool: Pick<pg.Pool, 'query'>): Promise<Set<string>> {
  await pool.query(ENDED);
  const { rows } = await pool.query<{ id: string }>('SELECT id FROM sandboxes');
  return new Set(rows.map(({ id }) => id));
}
