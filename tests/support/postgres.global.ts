import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { freePort } from '@palestra/hosting';
import { PostgresServer } from '../../apps/api/src/platform/database/postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** `postgresql://...` without the name of a database. */
    postgresUrl: string;
  }
}

export const TEMPLATE = 'palestra_template';
const root = path.resolve(import.meta.dirname, '../..');
const cache = path.join(root, 'node_modules/.cache/palestra');

/**
 * One real PostgreSQL per run with a migrated template that test files clone. initdb and migrations take several seconds, so a copy of
 * the stopped cluster is cached in node_modules.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-test-'));
  const databaseDir = path.join(folder, 'data');
  const stored = path.join(cache, `cluster-${await fingerprint()}`);
  if (existsSync(stored)) await copy(stored, databaseDir);
  else await createCluster(databaseDir, stored);
  const server = await startCluster(databaseDir);
  project.provide('postgresUrl', server.url);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

/** Hash of everything that determines the content of the cluster. */
async function fingerprint(): Promise<string> {
  const migrations = path.join(root, 'apps/api/prisma/migrations');
  const scripts = (await readdir(migrations, { recursive: true })).filter((name) => name.endsWith('.sql')).toSorted();
  const files = [
    path.join(root, 'apps/api/package.json'),
    path.join(root, 'node_modules/graphile-worker/package.json'),
    import.meta.filename,
    ...scripts.map((name) => path.join(migrations, name)),
  ];
  const hash = createHash('sha256').update(`${process.getuid?.()}`);
  for (const file of files) hash.update(await readFile(file));
  return hash.digest('hex').slice(0, 16);
}

/** Preserves owners and modes, which PostgreSQL checks. */
const copy = (from: string, to: string) => promisify(execFile)('cp', ['-a', from, to]);

async function createCluster(databaseDir: string, stored: string): Promise<void> {
  // Loads the whole service, so only without a cached cluster.
  const { migrate } = await import('../../apps/api/src/server.ts');
  const server = await startCluster(databaseDir, { initialise: true });
  const client = new pg.Client({ connectionString: `${server.url}/postgres` });
  await client.connect();
  await client.query(`CREATE DATABASE ${TEMPLATE}`);
  await client.end();
  await migrate(`${server.url}/${TEMPLATE}`);
  await server.stop();

  await mkdir(cache, { recursive: true });
  const partial = await mkdtemp(path.join(cache, 'partial-'));
  await copy(databaseDir, path.join(partial, 'data'));
  // Another run may have created it first.
  await rename(path.join(partial, 'data'), stored).catch(() => {});
  await rm(partial, { recursive: true, force: true });
}

async function startCluster(databaseDir: string, { initialise = false } = {}): Promise<{ url: string; stop(): Promise<void> }> {
  const server = new PostgresServer({
    databaseDir,
    choosePort: freePort,
    password: 'test',
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=600', '-c', 'fsync=off'],
  });
  if (initialise) await server.initialise();
  await server.start();
  return { url: `postgresql://postgres:test@127.0.0.1:${server.port}`, stop: () => server.stop() };
}
