import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import type { Config } from '../../../apps/api/src/platform/config.ts';
import { applyMigrations } from '../../../apps/api/src/platform/database/migrations.ts';
import { testApiKey } from '../../support/palestra.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** What an earlier version wrote, as a fixture of tests/support/fixtures. */
export interface OldStore {
  /** Rows as JSON by table. */
  tables: Record<string, string[]>;
  /** Files of the object store, base64. */
  objects: Record<string, string>;
  rollouts: Record<string, OldRollout>;
}
export interface OldRollout {
  id: string;
  reward: number | null;
  messages: { index: number; type: string; content: string }[];
}

export interface UpgradedStore<Store extends OldStore> {
  old: Store;
  /** The service of this version, on that store. */
  server: TestServer;
  /** Its data directory. */
  folder: string;
  close(): Promise<void>;
}

export interface OldStoreOptions {
  /** Name of a file of tests/support/fixtures. */
  fixture: string;
  /** The last migration of the version that wrote it. */
  lastMigration: string;
  /** Changes rows before this version starts. */
  change(client: pg.Client): Promise<void>;
  config?: Partial<Config>;
}

const root = path.resolve(import.meta.dirname, '../../..');

/** A connection of the superuser to a database, for the time of `work`. */
export async function onPostgres(database: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: `${inject('postgresUrl')}/${database}` });
  await client.connect();
  await work(client).finally(() => client.end());
}

/** Loads a store of an earlier version and starts this version on it, which migrates it. */
export async function upgradeStore<Store extends OldStore>(options: OldStoreOptions): Promise<UpgradedStore<Store>> {
  const old = JSON.parse(await readFile(path.join(root, 'tests/support/fixtures', options.fixture), 'utf8')) as Store;
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-upgrade-'));
  const name = `upgraded_${randomUUID().replaceAll('-', '')}`;
  const close = async () => {
    await onPostgres('postgres', (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    await rm(folder, { recursive: true, force: true });
  };
  await onPostgres('postgres', (client) => client.query(`CREATE DATABASE ${name}`));
  await onPostgres(name, async (client) => {
    await restoreStore(client, old, folder, options.lastMigration);
    await options.change(client);
  });
  for (const [object, text] of Object.entries(old.objects)) {
    const file = path.join(folder, 'blobs', object);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, Buffer.from(text, 'base64'));
  }
  const databaseUrl = `${inject('postgresUrl')}/${name}`;
  const server = await startServer({ databaseUrl, dataDir: folder, apiKey: testApiKey, ...options.config });
  return { old, server, folder, close: () => server.close().then(close) };
}

/** Creates the schema of that version, with its rows. `folder`: for a copy of its migrations. */
export async function restoreStore(client: pg.Client, old: OldStore, folder: string, lastMigration: string): Promise<void> {
  const migrations = path.join(folder, 'migrations');
  const all = await readdir(path.join(root, 'apps/api/prisma/migrations'));
  for (const name of all.filter((one) => one <= lastMigration))
    await cp(path.join(root, 'apps/api/prisma/migrations', name), path.join(migrations, name), { recursive: true });
  await applyMigrations(client, migrations);
  // No foreign keys, so that tables load in any order.
  await client.query('SET session_replication_role = replica');
  for (const [table, rows] of Object.entries(old.tables)) {
    const columns = Object.keys(JSON.parse(rows[0]!) as object).map((name) => `"${name}"`);
    await client.query(
      `INSERT INTO "${table}" (${columns.join(', ')}) OVERRIDING SYSTEM VALUE
       SELECT ${columns.join(', ')} FROM jsonb_populate_recordset(NULL::"${table}", $1) ON CONFLICT DO NOTHING`,
      [`[${rows.join(',')}]`],
    );
  }
  const { rows: sequences } = await client.query<{ sequence: string; name: string; column: string }>(
    `SELECT * FROM (SELECT pg_get_serial_sequence(quote_ident(table_name), column_name) AS sequence, table_name AS name, column_name AS column
       FROM information_schema.columns WHERE table_schema = 'public') c WHERE sequence IS NOT NULL`,
  );
  for (const { sequence, name, column } of sequences)
    await client.query(`SELECT setval('${sequence}', (SELECT COALESCE(max("${column}"), 0) + 1 FROM "${name}"))`);
}
