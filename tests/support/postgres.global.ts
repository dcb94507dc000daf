import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { PostgresServer } from '../../apps/api/src/platform/database/postgres-server.ts';
import { migrate } from '../../apps/api/src/server.ts';
import { freePort } from '@palestra/hosting';

declare module 'vitest' {
  interface ProvidedContext {
    /** `postgresql://...` without a database name. */
    postgresUrl: string;
  }
}

export const TEMPLATE = 'palestra_template';

/** One real PostgreSQL a run, with a migrated template that every test file clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-test-'));
  const port = await freePort();
  const server = new PostgresServer({
    databaseDir: path.join(folder, 'data'),
    port,
    password: 'test',
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=600', '-c', 'fsync=off'],
  });
  await server.initialise();
  await server.start();
  const url = `postgresql://postgres:test@127.0.0.1:${port}`;
  const client = new pg.Client({ connectionString: `${url}/postgres` });
  await client.connect();
  await client.query(`CREATE DATABASE ${TEMPLATE}`);
  await client.end();
  await migrate(`${url}/${TEMPLATE}`);
  project.provide('postgresUrl', url);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
