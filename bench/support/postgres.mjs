import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The embedded PostgreSQL of the service under test. */
export function databaseUrl(dataDir) {
  const password = readFileSync(path.join(dataDir, 'postgres/password'), 'utf8').trim();
  const port = readFileSync(path.join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[3];
  return `postgresql://postgres:${password}@127.0.0.1:${port}/palestra`;
}
