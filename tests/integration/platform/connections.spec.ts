import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database } from '../../../apps/api/src/platform/database/database.ts';
import { isDatabaseUnavailable } from '../../../apps/api/src/platform/database/database-errors.ts';
import { openSessionPool } from '../../../apps/api/src/sessions/persistence/session-pool.ts';
import { createDatabase } from '../../support/server.ts';

/** PostgreSQL cuts a connection between two statements of a transaction. An uncaught exception fails the run. */
let database: Database;
let drop: () => Promise<void>;
beforeAll(async () => {
  const created = await createDatabase();
  database = new Database(created.url, 4);
  drop = created.drop;
});
afterAll(async () => {
  await database.close();
  await drop();
});

async function cut(pid: number): Promise<void> {
  await database.pool.query('SELECT pg_terminate_backend($1)', [pid]);
  const gone = async () => (await database.pool.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).rowCount;
  await expect.poll(gone).toBe(0);
  // What PostgreSQL said at the end has arrived.
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const outcome = (work: Promise<unknown>) => work.then(() => 'done', isDatabaseUnavailable);

test.each(['plain', 'session'])('a broken connection of the %s pool fails its next statement, and the pool continues', async (name) => {
  const pool = name === 'plain' ? database.pool : openSessionPool(database.connectionString);
  const client = await pool.connect();
  await client.query('BEGIN');
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
  await cut(rows[0].pid);
  expect(await outcome(client.query('SELECT 1'))).toBe(true);
  client.release(true);
  expect((await pool.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  if (name === 'session') await pool.end();
});

test('a broken connection of Prisma fails its transaction, and the next one succeeds', async () => {
  const transaction = database.prisma.$transaction(async (prisma) => {
    const [row] = await prisma.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
    await cut(row!.pid);
    await prisma.$queryRaw`SELECT 1`;
  });
  expect(await outcome(transaction)).not.toBe('done');
  expect(await database.prisma.$queryRaw`SELECT 1 AS n`).toEqual([{ n: 1 }]);
});
