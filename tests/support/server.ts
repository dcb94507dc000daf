import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { type Config, readConfig } from '../../apps/api/src/platform/config.ts';
import { startServer as start, type RunningServer } from '../../apps/api/src/server.ts';
import { Database } from '../../apps/api/src/platform/database/database.ts';
import { createOrganisation } from './organisation.ts';
import { runtimeRole } from './runtime-role.ts';

const TEMPLATE = 'palestra_template';

export interface TestServer extends RunningServer {
  /** Its `databaseUrl` belongs to the superuser; the service runs with another role (runtime-role.ts). */
  config: Config;
  /** Connections of the service. `database` has other ones, of the superuser. */
  serviceDatabase: Database;
  /** fetch on this server with its API key. A `body` object is sent as JSON. */
  request(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string> },
  ): Promise<{ status: number; body: any; headers: Headers }>;
}

/** A new database, cloned from the migrated template. */
export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const base = inject('postgresUrl');
  const name = `test_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const run = async (sql: string) => {
    const client = new pg.Client({ connectionString: `${base}/postgres` });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  // Two concurrent clones would find the template in use.
  for (let attempt = 0; ; attempt += 1) {
    try {
      await run(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
      break;
    } catch (error) {
      if (attempt === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  return { url: `${base}/${name}`, drop: () => run(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

/** fetch on a service with a key. A `body` object is sent as JSON. */
export const requestWith =
  (url: string, apiKey: string): TestServer['request'] =>
  async (method, path, { body, headers = {} } = {}) => {
    const answer = await fetch(url + path, {
      method,
      headers: { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      redirect: 'manual',
    });
    const text = await answer.text();
    let parsed: unknown = text;
    try {
      parsed = JSON.parse(text);
    } catch {
      // Not JSON; the caller reads the text.
    }
    return { status: answer.status, body: parsed, headers: answer.headers };
  };

/**
 * A separate service with its own database, for files that test start, stop, configuration, replicas or whole tables. Other files use
 * `sharedServer`. Bundled environments are off by default.
 */
export async function startServer(overrides: Partial<Config> = {}): Promise<TestServer> {
  const database = overrides.databaseUrl ? null : await createDatabase();
  const dataDir = overrides.dataDir ?? (await mkdtemp(path.join(tmpdir(), 'palestra-data-')));
  const config: Config = {
    ...readConfig({}, (file) => file),
    port: 0,
    demo: false,
    jobs: 'here',
    // A test can read its upload at once, on any machine.
    readWaitMs: 30_000,
    bundledEnvironments: false,
    databaseUrl: database?.url ?? null,
    databasePoolSize: 8,
    logLevel: 'error',
    ...overrides,
    dataDir,
  };
  const urls = config.databaseUrl === null ? null : runtimeRole(config.databaseUrl);
  const server = await start(urls === null ? config : { ...config, databaseUrl: urls.runtime, databaseMigrationUrl: urls.migration });
  const ours = new Database(config.databaseUrl ?? server.database.connectionString, 4);
  return {
    ...server,
    config,
    serviceDatabase: server.database,
    database: ours,
    request: requestWith(server.url, server.apiKey),
    async close() {
      await ours.close();
      await server.close();
      await database?.drop();
      if (!overrides.dataDir) await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Files of one worker share its modules (`isolate: false`), so there is one service per worker. It ends with the worker. */
let shared: Promise<TestServer> | undefined;

/** A new organisation in the shared service of this worker, which hosts the bundled environments. `close` does not end the service. */
export async function sharedServer(): Promise<TestServer> {
  shared ??= startServer({ bundledEnvironments: true });
  const server = await shared;
  const { name, apiKey } = await createOrganisation(server.url, server.apiKey);
  return { ...server, orgName: name, apiKey, request: requestWith(server.url, apiKey), close: async () => {} };
}
