import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';

const SECONDS = 10;
/** Transactions a second. The loops of derivation alone made 23 when each asked for itself. */
const MOST = 10;
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

test('a service without work asks its database seldom', { timeout: 60_000 }, async () => {
  // The jobs of the start.
  await pause(8);
  const before = await transactions();
  await pause(SECONDS);
  const after = await transactions();
  expect(after - before).toBeGreaterThan(0);
  expect((after - before) / SECONDS).toBeLessThan(MOST);
});
