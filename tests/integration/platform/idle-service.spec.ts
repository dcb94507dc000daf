import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';

const SECONDS = 5;
/** Transactions a second; it needs 12. The loops of derivation alone made 23 when each asked for itself. */
const MOST = 15;
let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/** Transactions of the database so far; PostgreSQL counts those of an idle connection a second late. */
async function transactions(): Promise<number> {
  const { rows } = await server.database.pool.query(
    'SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(rows[0].n);
}

async function rate(): Promise<number> {
  const before = await transactions();
  await pause(SECONDS);
  return ((await transactions()) - before) / SECONDS;
}

test('a service without work asks its database seldom', { timeout: 150_000 }, async () => {
  const first = await rate();
  expect(first).toBeGreaterThan(0);
  // The jobs of the start, and vacuums of PostgreSQL, end after a while.
  await expect.poll(rate, { timeout: 120_000, interval: 100 }).toBeLessThan(MOST);
});
