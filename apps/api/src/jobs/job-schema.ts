import { openPool } from '../platform/database/pool.ts';
import { runMigrations } from 'graphile-worker';

/** graphile-worker's tables are in a schema of their own, and nobody else's business. */
export const JOB_SCHEMA = 'palestra_jobs';

/** Brings the tables of the job library up to date; the caller holds the lock of migrations. */
export async function migrateJobs(databaseUrl: string): Promise<void> {
  const pool = openPool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 10_000 });
  try {
    await runMigrations({ pgPool: pool, schema: JOB_SCHEMA, logger: undefined });
  } finally {
    await pool.end();
  }
}
