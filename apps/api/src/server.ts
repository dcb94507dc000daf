import path from 'node:path';
import pg from 'pg';
import type { Logger } from 'pino';
import { KEY_SCOPES } from '@palestra/protocol';
import { createApp } from './app.ts';
import { AccountService } from './accounts/account.service.ts';
import { FIRST_ORG } from './accounts/owner.ts';
import { newApiKey } from './accounts/secret-token.ts';
import { DemoService } from './demo/demo.service.ts';
import { HealthService } from './health/health.service.ts';
import { migrateJobs } from './jobs/job-schema.ts';
import type { Config } from './platform/config.ts';
import { Database } from './platform/database/database.ts';
import { DatabaseMonitor } from './platform/database/database-monitor.ts';
import { type RunningPostgres, startEmbeddedPostgres } from './platform/database/embedded-postgres.ts';
import { readOrCreateSecret, replaceSecret } from './platform/local-secrets.ts';
import { openSecretKeys } from './platform/secret-keys.ts';
import type { PostgresStatus } from './platform/database/postgres-supervisor.ts';
import { createLogger } from './platform/telemetry/logger.ts';
import { applyMigrations, newestMigration, withMigrationLock } from './platform/database/migrations.ts';
import { createOutboundPolicy } from './platform/outbound.ts';
import { grantToRuntimeRole } from './platform/database/role-grants.ts';
import { ShutdownList } from './platform/shutdown.ts';
import { openBlobStore } from './platform/storage.ts';
import { WorkerProcess } from './platform/worker-process.ts';
import { SessionServer } from './sessions/server/session-server.ts';
import type { PublicOrigin } from './platform/tokens.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '../prisma/migrations');

/** The port is taken; the message is one line for the terminal. */
export class PortTakenError extends Error {}

/** The configured key was revoked; the message is one line for the terminal. */
export class RevokedKeyError extends Error {}

/** The configured database cannot be used; the message is one line for the terminal. */
export class DatabaseUnreachableError extends Error {}

export interface RunningServer {
  url: string;
  apiKey: string;
  orgName: string;
  /** Signs one browser in. */
  signInUrl: string;
  /** Starts the demo, or continues it after an interruption, unless it is complete, removed, or there are other runs. */
  playDemo(): Promise<void>;
  database: Database;
  close(): Promise<void>;
}

/** Starts everything: PostgreSQL (unless `databaseUrl` is set), migrations, object store, first account, the service itself. */
export async function startServer(config: Config): Promise<RunningServer> {
  const shutdown = new ShutdownList();
  const draining = new AbortController();
  const logger = createLogger(config.logLevel);
  const close = () => {
    draining.abort();
    return shutdown.run((name, error) => logger.warn({ err: error }, `${name} did not stop cleanly`));
  };
  try {
    const secret = await openSecretKeys(config);
    const server = config.databaseUrl === null ? await startLocalDatabase(config, shutdown, logger, draining.signal) : null;
    const databaseUrl = server?.url ?? config.databaseUrl!;
    await migrate(databaseUrl, server?.migrationUrl ?? config.databaseMigrationUrl);
    const database = await openDatabase(databaseUrl, config, shutdown, server);

    const origin: PublicOrigin = { url: config.publicUrl ?? '' };
    const { blobs, urlSigner } = await openBlobStore(config, origin, secret);
    const outbound = createOutboundPolicy(config, databaseUrl);
    const worker = config.jobs === 'child' ? new WorkerProcess(logger) : null;
    if (worker) shutdown.push('worker', 35_000, () => worker.stop());
    const app = await createApp({
      config,
      database,
      blobs,
      urlSigner,
      logger,
      origin,
      outbound,
      secret,
      worker,
      draining: draining.signal,
    });
    shutdown.push('server', config.drainMs + 30_000, () => app.close());

    const accounts = app.get(AccountService);
    const { owner, apiKey } = await ensureFirstKey(accounts, config);
    app.get(HealthService).operatorKey = apiKey;
    const token = await accounts.createSignInToken({ ...owner, keyId: null, scopes: [...KEY_SCOPES] }, null);
    const url = await listen(app, config);
    // The service has clients from here on: the next lines must not fail while PostgreSQL restarts.
    origin.url ||= url;
    await app.get(SessionServer).announce(config.replicaUrl ?? url);
    // It adds no migrations and connects with the rights of the service.
    worker?.start({ ...config, publicUrl: origin.url, databaseUrl, databaseMigrationUrl: null, workerPort: null });
    const playDemo = () => app.get(DemoService).play(url, owner);
    return { url, apiKey, orgName: FIRST_ORG, signInUrl: `${origin.url}/login?token=${token}`, playDemo, database, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Creates the first owner and a valid key. Replaces a revoked key, but throws if the configuration sets it. */
async function ensureFirstKey(accounts: AccountService, config: Config) {
  const knownKey = config.apiKey ?? (await readOrCreateSecret(config.dataDir, 'api-key', newApiKey)).value;
  const { owner, revoked } = await accounts.ensureFirstOwner(knownKey);
  if (!revoked) return { owner, apiKey: knownKey };
  if (config.apiKey) throw new RevokedKeyError('PALESTRA_API_KEY is a revoked key: set another one, or unset it');
  const apiKey = await replaceSecret(config.dataDir, 'api-key', newApiKey());
  await accounts.ensureFirstOwner(apiKey);
  return { owner, apiKey };
}

async function startLocalDatabase(config: Config, shutdown: ShutdownList, logger: Logger, draining: AbortSignal): Promise<RunningPostgres> {
  const onEnd = (status: PostgresStatus) => logger.warn(status, 'PostgreSQL ended; it restarts');
  const postgres = await startEmbeddedPostgres(path.join(config.dataDir, 'postgres'), { draining, onEnd });
  shutdown.push('PostgreSQL', 20_000, () => postgres.stop());
  return postgres;
}

/** The pools of the running service and the monitor of their server. `server`: the embedded one. `probeMs`: see DatabaseMonitor. */
export async function openDatabase(
  url: string,
  config: Config,
  shutdown: ShutdownList,
  server: RunningPostgres | null = null,
  probeMs?: number,
): Promise<Database> {
  const monitor = new DatabaseMonitor(url, await newestMigration(MIGRATIONS), server, probeMs);
  const database = new Database(url, config.databasePoolSize, monitor);
  shutdown.push('database', 5_000, () => database.close());
  await monitor.start();
  return database;
}

/**
 * Applies migrations as the role of `migrationUrl` and grants the role of `databaseUrl` its rights. Without `migrationUrl` the role of
 * `databaseUrl` applies them, or checks that none is pending.
 */
export async function migrate(databaseUrl: string, migrationUrl: string | null = null): Promise<void> {
  const url = migrationUrl ?? databaseUrl;
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    const { host, port, database } = client;
    throw new DatabaseUnreachableError(
      `the database ${database} at ${host}:${port} (${migrationUrl === null ? 'DATABASE_URL' : 'DATABASE_MIGRATION_URL'}) refused the connection: ${(error as Error).message}`,
      { cause: error },
    );
  }
  try {
    await withMigrationLock(client, async () => {
      await applyMigrations(client, MIGRATIONS);
      await migrateJobs(url);
      await grantToRuntimeRole(client, databaseUrl);
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
    throw new PortTakenError(`port ${port} of ${host} is taken: stop the other program, or set PORT`, { cause: error });
  }
  const address = app.getHttpServer().address() as { port: number };
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${address.port}`;
}
