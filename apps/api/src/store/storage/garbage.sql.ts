import type pg from 'pg';

type Queryable = Pick<pg.Pool, 'query'>;

export interface GarbageKey {
  blob_key: string;
  rollout_seq: string;
}

/** Stores keys before their objects are written, so that a crash leaves no unknown object. */
export async function declareObjects(client: Queryable, keys: readonly GarbageKey[], doomed = false): Promise<void> {
  await client.query(
    `INSERT INTO rollout_garbage (blob_key, rollout_seq, doomed) SELECT key, seq, $3 FROM unnest($1::text[], $2::bigint[]) AS k(key, seq)
     ORDER BY key ON CONFLICT (blob_key) DO UPDATE SET doomed = rollout_garbage.doomed OR excluded.doomed`,
    [keys.map(({ blob_key }) => blob_key), keys.map(({ rollout_seq }) => rollout_seq), doomed],
  );
}

/** Dooms keys that are older than `olderThanMs`, and returns doomed keys. Plan: a scan of a table that is empty except after failures. */
export async function selectDoomed(pool: Queryable, olderThanMs: number, limit: number): Promise<string[]> {
  await pool.query(`UPDATE rollout_garbage SET doomed = true WHERE NOT doomed AND since < now() - $1 * interval '1 ms'`, [olderThanMs]);
  const { rows } = await pool.query<{ blob_key: string }>(
    'SELECT blob_key FROM rollout_garbage WHERE doomed ORDER BY since, blob_key LIMIT $1',
    [limit],
  );
  return rows.map(({ blob_key }) => blob_key);
}

export async function forgetObjects(pool: Queryable, keys: readonly string[]): Promise<void> {
  await pool.query('DELETE FROM rollout_garbage WHERE doomed AND blob_key = ANY($1::text[])', [keys]);
}
