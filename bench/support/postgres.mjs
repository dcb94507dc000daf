import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The embedded PostgreSQL of the service under test. */
export function databaseUrl(dataDir) {
  const password = readFileSync(path.join(dataDir, 'postgres/password'), 'utf8').trim();
  const port = readFileSync(path.join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[3];
  return `postgresql://postgres:${password}@127.0.0.1:${port}/palestra`;
}

const LEFT = `SELECT EXISTS (SELECT FROM rollout_heads WHERE dirty) OR EXISTS (SELECT FROM rollout_heads WHERE unsearched)
  OR EXISTS (SELECT FROM dirty_steps) AS left`;

/** Resolves when all uploads are derived, so that background work of one side does not slow the other. */
export async function settled(client) {
  for (;;) {
    const { rows } = await client.query(LEFT);
    if (!rows[0].left) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
