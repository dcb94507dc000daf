import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallIntent } from '@palestra/session';
import { openPool } from '../../../apps/api/src/platform/database/pool.ts';
import { SqlCallLedger } from '../../../apps/api/src/sessions/ledger/call-ledger.sql.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** After a crash of PostgreSQL, a renewed lease tells other replicas that the lost calls of this one are stored again (docs/adr/0002). */
let server: TestServer;
let pool: pg.Pool;
beforeAll(async () => {
  server = await sharedServer();
  pool = openPool({ connectionString: server.database.connectionString, max: 3 });
});
afterAll(() => pool?.end());

test('a commit does not overtake the writes that an earlier one repeats', async () => {
  const ledger = new SqlCallLedger(pool, () => {});
  const sid = `confirm-${randomUUID()}`;
  await pool.query(
    `INSERT INTO sessions (sid, org_id, user_id, state, version, heartbeat_timeout_ms, idle_timeout_ms, created_at, last_seen_at, last_request_at)
     VALUES ($1, 'org', 'user', 'ready', 1, 900000, 900000, now(), now(), now())`,
    [sid],
  );
  const taskId = randomBytes(16).toString('hex');
  const call: CallIntent = { taskId, sid, kind: 'call', tool: 'look', input: '{}', replicaId: 'here', startedAt: Date.now() };
  expect(await ledger.begin(call, true)).toEqual({ verdict: 'started' });
  // A crash loses the row and breaks a connection.
  await pool.query('DELETE FROM session_calls WHERE task_id = $1', [taskId]);
  pool.emit('error', new Error('the connection broke'));

  const isStored: boolean[] = [];
  const commit = async () => void isStored.push((await ledger.find(taskId)) !== null);
  let confirmed: Promise<unknown>;
  const blocker = await server.database.pool.connect();
  try {
    await blocker.query('BEGIN');
    await blocker.query('LOCK TABLE session_calls IN SHARE ROW EXCLUSIVE MODE');
    confirmed = Promise.all([ledger.confirm(commit), ledger.confirm(commit)]);
    const waiting = async () => {
      const { rows } = await server.database.pool.query(
        `SELECT count(*)::int AS n FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO session_calls%' AND datname = current_database()`,
      );
      return rows[0].n as number;
    };
    await expect.poll(waiting).toBe(1);
    // Long enough for a commit that does not wait.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isStored).toEqual([]);
  } finally {
    await blocker.query('COMMIT');
    blocker.release();
  }
  await confirmed;
  expect(isStored).toEqual([true, true]);
});
