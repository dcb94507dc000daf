import { openPool } from '../platform/database/pool.ts';
import { runMigrations } from 'graphile-worker';

/** Schema of graphile-worker's tables, which only the library uses. */
export const JOB_SCHEMA = 'palestra_jobs';

/** Migrates the tables of the job library. The caller holds the migration lock. */
export async function migrateJobs(databaseUrl: string): Promise<void> {
  const pool = openPool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 10_000 });
  try {
    await runMigrations({ pgPool: pool, schema: JOB_SCHEMA, logger: undefined });
  } finally {
    await pool.end();
  }
}
