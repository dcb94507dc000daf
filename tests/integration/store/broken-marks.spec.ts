import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallIntent } from '@palestra/session';
import { SqlCallLedger } from '../../../apps/api/src/sessions/ledger/call-ledger.sql.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** The mark of a broken stream, and the post that repeats its call (docs/adr/0007), however close they come. */
let server: TestServer;
let ledger: SqlCallLedger;
const sid = `marks-${randomUUID()}`;

beforeAll(async () => {
  server = await sharedServer();
  ledger = new SqlCallLedger(server.database.pool, () => {});
  await server.database.pool.query(
    `INSERT INTO sessions (sid, org_id, user_id, state, version, heartbeat_timeout_ms, idle_timeout_ms, created_at, last_seen_at, last_request_at)
     VALUES ($1, 'org', 'user', 'ready', 1, 900000, 900000, now(), now(), now())`,
    [sid],
  );
});
afterAll(() => server?.close());

const callOf = (tool: string): CallIntent => ({
  taskId: randomBytes(16).toString('hex'),
  sid,
  kind: 'call',
  tool,
  input: '{}',
  replicaId: 'here',
  startedAt: Date.now(),
});

test('a request that equals a call with a broken stream joins that call', async () => {
  const [call, again] = [callOf('marked'), callOf('marked')];
  expect(await ledger.begin(call, true)).toEqual({ verdict: 'started' });
  await ledger.markUndelivered(call.taskId);
  expect(await ledger.begin(again, true)).toEqual({ verdict: 'join', taskId: call.taskId });
});

test('a request does not overtake the mark of its call', async () => {
  const [call, again] = [callOf('overtaken'), callOf('overtaken')];
  expect(await ledger.begin(call, true)).toEqual({ verdict: 'started' });
  const client = await server.database.pool.connect();
  await client.query('BEGIN');
  await client.query('SELECT FROM session_calls WHERE task_id = $1 FOR UPDATE', [call.taskId]);
  const mark = ledger.markUndelivered(call.taskId);
  await expect
    .poll(async () => {
      const { rows } = await server.database.pool.query(
        `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%broken_at%' AND datname = current_database()`,
      );
      return rows[0].waiting as number;
    })
    .toBe(1);
  let answered = false;
  const answer = ledger.begin(again, true).finally(() => (answered = true));
  // Long enough for an answer that did not wait.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(answered).toBe(false);
  await client.query('COMMIT');
  client.release();
  await mark;
  expect(await answer).toEqual({ verdict: 'join', taskId: call.taskId });
});
