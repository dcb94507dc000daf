import path from 'node:path';
import { ConfigError, readConfig } from './platform/config.ts';
import { MigrationError } from './platform/database/migrations.ts';
import { DatabaseUnreachableError, migrate } from './server.ts';

/**
 * Applies all migrations and ends, for deployments in which the service's role may not change the schema. Reads DATABASE_URL and
 * DATABASE_MIGRATION_URL.
 */
async function main(): Promise<void> {
  const { databaseUrl, databaseMigrationUrl } = readConfig(process.env, (file) => path.resolve(file));
  if (databaseUrl === null)
    throw new ConfigError('DATABASE_URL: set it to the database to migrate; the embedded one is migrated when the service starts');
  await migrate(databaseUrl, databaseMigrationUrl);
}

main().then(
  () => process.stdout.write('The database is up to date.\n'),
  (error: unknown) => {
    const { message, stack } = error as Error;
    const expected = error instanceof ConfigError || error instanceof DatabaseUnreachableError || error instanceof MigrationError;
    process.stderr.write(`palestra: ${expected || !stack ? message : stack}\n`);
    process.exitCode = 1;
  },
);
