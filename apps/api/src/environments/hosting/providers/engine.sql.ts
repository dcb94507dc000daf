import type { Capabilities } from '@palestra/hosting';
import type pg from 'pg';

type Queryable = Pick<pg.Pool, 'query'>;

export interface StoredEngine {
  name: string;
  /** null while it does not answer. */
  capabilities: Capabilities | null;
  detail: string | null;
  /** Seconds since it last answered. */
  silent_s: number;
}

/** The few rows of engines. */
export async function selectEngines(pool: Queryable): Promise<StoredEngine[]> {
  const { rows } = await pool.query<StoredEngine>(
    'SELECT name, capabilities, detail, extract(epoch FROM now() - seen_at)::float8 AS silent_s FROM hosting_engines ORDER BY name',
  );
  return rows;
}

/** `failure`: why it does not answer; then it was not seen. */
export async function saveEngine(pool: Queryable, name: string, capabilities: Capabilities | null, failure: string | null): Promise<void> {
  await pool.query(
    `INSERT INTO hosting_engines (name, capabilities, detail, seen_at) VALUES ($1, $2, $3, CASE WHEN $3::text IS NULL THEN now() ELSE 'epoch' END)
     ON CONFLICT (name) DO UPDATE SET detail = EXCLUDED.detail, capabilities = coalesce(EXCLUDED.capabilities, hosting_engines.capabilities),
       seen_at = greatest(hosting_engines.seen_at, EXCLUDED.seen_at)`,
    [name, capabilities === null ? null : JSON.stringify(capabilities), failure],
  );
}

/** The id of this installation, which stays the same. */
export async function installationId(pool: Queryable): Promise<string> {
  await pool.query('INSERT INTO hosting_installation DEFAULT VALUES ON CONFLICT DO NOTHING');
  return (await pool.query<{ id: string }>('SELECT id FROM hosting_installation')).rows[0]!.id;
}
