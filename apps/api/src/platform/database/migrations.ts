import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';

/** An arbitrary number that no other program locks. */
const ADVISORY_LOCK = 7_210_563_904;

const INSUFFICIENT_PRIVILEGE = '42501';

const CREATE_HISTORY = `CREATE TABLE IF NOT EXISTS _prisma_migrations (
  id VARCHAR(36) PRIMARY KEY, checksum VARCHAR(64) NOT NULL, finished_at TIMESTAMPTZ, migration_name VARCHAR(255) NOT NULL,
  logs TEXT, rolled_back_at TIMESTAMPTZ, started_at TIMESTAMPTZ NOT NULL DEFAULT now(), applied_steps_count INTEGER NOT NULL DEFAULT 0)`;

/** A migration failed or an applied one was edited; the message is one line for the terminal. */
export class MigrationError extends Error {}

/** Runs `change` under a lock: servers that start at the same time change the schema one after another. */
export async function withMigrationLock<T>(client: pg.ClientBase, change: () => Promise<T>): Promise<T> {
  await client.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCK]);
  try {
    return await change();
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [ADVISORY_LOCK]);
  }
}

/**
 * Applies the pending `migration.sql` of every folder, each in a transaction. The caller holds the lock. The history table is Prisma's, so
 * that `prisma migrate deploy` also works.
 */
export async function applyMigrations(client: pg.ClientBase, folder: string): Promise<string[]> {
  const applied = await readHistory(client);
  const names = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const fresh: string[] = [];
  for (const name of names.toSorted()) {
    const sql = await readFile(path.join(folder, name, 'migration.sql'), 'utf8');
    const checksum = createHash('sha256').update(sql).digest('hex');
    const known = applied.get(name);
    if (known !== undefined && known !== checksum) {
      throw new MigrationError(
        `the database was created by another version of Palestra (migration ${name} differs): start that version, or use another database`,
      );
    }
    if (known === undefined) {
      await applyOne(client, name, sql, checksum);
      fresh.push(name);
    }
    applied.delete(name);
  }
  if (applied.size > 0) {
    throw new MigrationError(
      `the database was created by a newer version of Palestra (it has ${[...applied.keys()].join(', ')}): start that version`,
    );
  }
  return fresh;
}

/**
 * Checksums by the names of applied migrations. Creates the history table only if it is missing, because the role may not create tables.
 */
async function readHistory(client: pg.ClientBase): Promise<Map<string, string>> {
  const { rows } = await client.query<{ missing: boolean }>(`SELECT to_regclass('_prisma_migrations') IS NULL AS missing`);
  if (rows[0]!.missing) await client.query(CREATE_HISTORY).catch(explainRights);
  const history = await client.query<{ migration_name: string; checksum: string }>(
    'SELECT migration_name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  );
  return new Map(history.rows.map((row) => [row.migration_name, row.checksum]));
}

/** The name of the newest migration of this version. */
export async function newestMigration(folder: string): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted()
    .at(-1)!;
}

function explainRights(error: unknown): never {
  if ((error as { code?: unknown }).code !== INSUFFICIENT_PRIVILEGE) throw error;
  throw new MigrationError(
    'migrations are pending, and the role of DATABASE_URL may not apply them: set DATABASE_MIGRATION_URL, or run apps/api/dist/migrate.js with it first',
    { cause: error },
  );
}

async function applyOne(client: pg.ClientBase, name: string, sql: string, checksum: string): Promise<void> {
  try {
    await client.query('BEGIN');
    await client.query(sql);
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
       VALUES (gen_random_uuid()::text, $1, $2, now(), 1)`,
      [checksum, name],
    );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    if ((error as { code?: unknown }).code === INSUFFICIENT_PRIVILEGE) explainRights(error);
    throw new MigrationError(`migration ${name} failed: ${(error as Error).message}`, { cause: error });
  }
}
