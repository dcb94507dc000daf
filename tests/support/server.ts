import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { type Config, readConfig } from '../../apps/api/src/platform/config.ts';
import { startServer as start, type RunningServer } from '../../apps/api/src/server.ts';

const TEMPLATE = 'palestra_template';

export interface TestServer extends RunningServer {
  config: Config;
  /** fetch on this server with its API key; `body` objects are sent as JSON. */
  request(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string> },
  ): Promise<{ status: number; body: any; headers: Headers }>;
}

/** A fresh database cloned from the migrated template. */
export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const base = inject('postgresUrl');
  const name = `test_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const run = async (sql: string) => {
    const client = new pg.Client({ connectionString: `${base}/postgres` });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  // Two files that clone at once would each find the template in use.
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

/** The whole service on a free port, with a database of its own and without bundled environments (unless asked for). */
export async function startServer(overrides: Partial<Config> = {}): Promise<TestServer> {
  const database = overrides.databaseUrl ? null : await createDatabase();
  const dataDir = overrides.dataDir ?? (await mkdtemp(path.join(tmpdir(), 'palestra-data-')));
  const config: Config = {
    ...readConfig({}, (file) => file),
    port: 0,
    demo: false,
    bundledEnvironments: false,
    databaseUrl: database?.url ?? null,
    databasePoolSize: 8,
    logLevel: 'error',
    ...overrides,
    dataDir,
  };
  const server = await start(config);
  return {
    ...server,
    config,
    async close() {
      await server.close();
      await database?.drop();
      if (!overrides.dataDir) await rm(dataDir, { recursive: true, force: true });
    },
    async request(method, url, { body, headers = {} } = {}) {
      const answer = await fetch(server.url + url, {
        method,
        headers: { 'x-api-key': server.apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        redirect: 'manual',
      });
      const text = await answer.text();
      let parsed: unknown = text;
      try {
        parsed = JSON.parse(text);
      } catch {
        // Not JSON: the caller looks at the text.
      }
      return { status: answer.status, body: parsed, headers: answer.headers };
    },
  };
}
