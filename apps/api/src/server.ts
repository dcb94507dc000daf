import path from 'node:path';
import pg from 'pg';
import { createApp } from './app.ts';
import { AccountService, FIRST_ORG } from './accounts/account.service.ts';
import { ALL_SCOPES } from './accounts/authenticator.ts';
import { newApiKey } from './accounts/secret-token.ts';
import { migrateJobs } from './jobs/job-schema.ts';
import type { Config } from './platform/config.ts';
import { Database } from './platform/database/database.ts';
import { startEmbeddedPostgres } from './platform/database/embedded-postgres.ts';
import { randomSecret, readOrCreateSecret, replaceSecret } from './platform/local-secrets.ts';
import { createLogger } from './platform/telemetry/logger.ts';
import { applyMigrations, withMigrationLock } from './platform/database/migrations.ts';
import { ShutdownList } from './platform/shutdown.ts';
import { openBlobStore } from './platform/storage.ts';
import { SessionPlane } from './sessions/session-plane.ts';
import type { PublicOrigin } from './platform/tokens.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '../../../prisma/migrations');

/** The port is taken; the message is one line for the terminal. */
export class PortTakenError extends Error {}

/** The configured key cannot be the first one; one line for the terminal. */
export class RevokedKeyError extends Error {}

/** The given database cannot be used; one line for the terminal. */
export class DatabaseUnreachableError extends Error {}

export interface RunningServer {
  url: string;
  apiKey: string;
  orgName: string;
  /** Signs one browser in. */
  signInUrl: string;
  /** There is no run yet. */
  fresh: boolean;
  database: Database;
  close(): Promise<void>;
}

/** Starts everything: PostgreSQL (unless one is given), migrations, object store, first account, the service itself. */
export async function startServer(config: Config): Promise<RunningServer> {
  const shutdown = new ShutdownList();
  const logger = createLogger(config.logLevel);
  const close = () => shutdown.run((name, error) => logger.warn({ err: error }, `${name} did not stop cleanly`));
  try {
    const secret = config.secretKey ?? (await readOrCreateSecret(config.dataDir, 'server-secret', randomSecret)).value;
    const databaseUrl = config.databaseUrl ?? (await startLocalDatabase(config, shutdown));
    await migrate(databaseUrl);
    const database = new Database(databaseUrl, config.databasePoolSize);
    shutdown.push('database', 5_000, () => database.close());

    const origin: PublicOrigin = { url: config.publicUrl ?? '' };
    const { blobs, urlSigner } = await openBlobStore(config, origin, secret);
    const app = await createApp({ config, database, blobs, urlSigner, logger, origin, secret });
    shutdown.push('server', config.drainMs + 30_000, () => app.close());

    const accounts = app.get(AccountService);
    const { owner, apiKey } = await ensureFirstKey(accounts, config);
    const url = await listen(app, config);
    origin.url ||= url;
    await app.get(SessionPlane).announce(config.replicaUrl ?? url);
    const signInUrl = `${origin.url}/login?token=${await accounts.createSignInToken({ ...owner, keyId: null, scopes: ALL_SCOPES }, null)}`;
    return { url, apiKey, orgName: FIRST_ORG, signInUrl, fresh: await hasNoRuns(database), database, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The first owner with a key that works: a revoked one is replaced, unless the configuration insists on it. */
async function ensureFirstKey(accounts: AccountService, config: Config) {
  const given = config.apiKey ?? (await readOrCreateSecret(config.dataDir, 'api-key', newApiKey)).value;
  const { owner, revoked } = await accounts.ensureFirstOwner(given);
  if (!revoked) return { owner, apiKey: given };
  if (config.apiKey) throw new RevokedKeyError('PALESTRA_API_KEY names a key that was revoked: set another one, or none');
  const apiKey = await replaceSecret(config.dataDir, 'api-key', newApiKey());
  await accounts.ensureFirstOwner(apiKey);
  return { owner, apiKey };
}

/** Nobody uploaded anything yet: the demo is welcome. */
async function hasNoRuns(database: Database): Promise<boolean> {
  const { rows } = await database.pool.query<{ empty: boolean }>('SELECT NOT EXISTS (SELECT 1 FROM runs) AS empty');
  return rows[0]!.empty;
}

async function startLocalDatabase(config: Config, shutdown: ShutdownList): Promise<string> {
  const postgres = await startEmbeddedPostgres(path.join(config.dataDir, 'postgres'));
  shutdown.push('PostgreSQL', 20_000, () => postgres.stop());
  return postgres.url;
}

export async function migrate(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  try {
    await client.connect();
  } catch (error) {
    const { host, port, database } = client;
    throw new DatabaseUnreachableError(
      `the database ${database} at ${host}:${port} (DATABASE_URL) does not let us in: ${(error as Error).message}`,
      { cause: error },
    );
  }
  try {
    await withMigrationLock(client, async () => {
      await applyMigrations(client, MIGRATIONS);
      await migrateJobs(databaseUrl);
    });
  } finally {
    await client.end();
  }
}

async function listen(app: Awaited<ReturnType<typeof createApp>>, { host, port }: Config): Promise<string> {
  try {
    await app.listen(port, host);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new PortTakenError(`port ${port} of ${host} is taken: stop what listens there, or set PORT`, { cause: error });
  }
  const address = app.getHttpServer().address() as { port: number };
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${address.port}`;
}
