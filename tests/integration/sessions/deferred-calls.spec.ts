import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CallIntent, CallOutcome, DeferredCall } from '@palestra/session';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { SessionEvents, type SessionChanges } from '../../../apps/api/src/sessions/events/session-events.service.ts';
import { SqlCallLedger } from '../../../apps/api/src/sessions/ledger/call-ledger.sql.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** Rows of calls that no client can resume are written with their outcomes. */
let server: TestServer;
let ledger: SqlCallLedger;
beforeAll(async () => {
  server = await sharedServer();
  ledger = new SqlCallLedger(server.database.pool, (error) => expect.unreachable(String(error)));
});
afterAll(() => server?.close());

const intentOf = (sid: string, input: string): CallIntent => {
  const taskId = randomBytes(16).toString('hex');
  return { taskId, sid, kind: 'call', tool: 'step', input, replicaId: 'here', startedAt: Date.now() };
};
const text = (value: string): CallOutcome => ({ type: 'result', text: value, ok: true, reason: null, reward: 0.5, finished: false });
const end = (deferred: DeferredCall, outcome: CallOutcome) => deferred.end({ outcome, failureClass: 'ok', endedAt: Date.now() });

test('stores one row per call, in the order in which the calls ended', async () => {
  const calls = Array.from({ length: 40 }, (_, n) => intentOf('deferred-order', `{"n":${n}}`));
  const deferred = calls.map((call) => ledger.defer(call)!);
  for (const [n, call] of deferred.entries()) end(call, text(`"${n}"`));
  await ledger.drain();
  const journal = await ledger.journal('deferred-order');
  expect(journal.map(({ input, outcome }) => [input, (outcome as { text: string }).text])).toEqual(
    calls.map(({ input }, n) => [input, `"${n}"`]),
  );
  expect(journal[0]).toMatchObject({ replicaId: 'here', failureClass: 'ok', outcome: { reward: 0.5, ok: true, finished: false } });
  expect(journal.map(({ startedAt, endedAt }) => [startedAt, endedAt! >= startedAt])).toEqual(calls.map((call) => [call.startedAt, true]));
});

test('keeps every text and every null', async () => {
  const strange = ['', '\\.', '\\N', 'a\tb\r\nc', '"quoted", \'so\'', '\u0001\u0002\u0003', '{"a":"\\\\n\\u0000"}', '🂡 héllo', ' '];
  for (const value of strange) {
    const call = { ...intentOf('deferred-texts', value), tool: value };
    const outcome: CallOutcome = { type: 'result', text: value, ok: false, reason: null, reward: null, finished: true };
    end(ledger.defer(call)!, outcome);
    await ledger.drain();
    expect(await ledger.find(call.taskId)).toMatchObject({ tool: value, input: value, outcome });
  }
  const nul = { ...intentOf('deferred-texts', '{}'), tool: 'a\0b' };
  end(ledger.defer(nul)!, { type: 'refused', code: 'call_timeout', status: 504, detail: 'late\0' });
  await ledger.drain();
  expect(await ledger.find(nul.taskId)).toMatchObject({ tool: 'a\uFFFDb', outcome: { type: 'refused', code: 'call_timeout' } });
});

test('stores a long call as running, then with its outcome', async () => {
  const call = intentOf('deferred-long', '{}');
  const deferred = ledger.defer(call)!;
  await expect.poll(() => ledger.find(call.taskId), { timeout: 20_000 }).toMatchObject({ outcome: null, sid: 'deferred-long' });
  end(deferred, { type: 'tool_failed', message: 'it broke' });
  await ledger.drain();
  expect(await ledger.find(call.taskId)).toMatchObject({ outcome: { type: 'tool_failed', message: 'it broke' } });
  expect(await server.database.pool.query(`SELECT FROM session_calls WHERE sid = 'deferred-long'`)).toMatchObject({ rowCount: 1 });
});

test('stores the outcome of a call that ends while its row is written as running', async () => {
  const calls = Array.from({ length: 200 }, () => intentOf('deferred-race', '{}'));
  const deferred = calls.map((call) => ledger.defer(call)!);
  const drained = ledger.drain();
  for (const call of deferred) end(call, text('"late"'));
  await drained;
  await ledger.drain();
  expect((await ledger.journal('deferred-race')).map(({ outcome }) => outcome)).toEqual(calls.map(() => text('"late"')));
});

test('keeps the outcome of a row that an earlier statement stored', async () => {
  const calls = Array.from({ length: 3 }, () => intentOf('deferred-again', '{}'));
  for (const round of ['"first"', '"second"']) {
    for (const call of round === '"first"' ? calls.slice(0, 2) : calls) end(ledger.defer(call)!, text(round));
    await ledger.drain();
  }
  const journal = await ledger.journal('deferred-again');
  expect(journal.map(({ taskId, outcome }) => [taskId, (outcome as { text: string }).text])).toEqual([
    [calls[0]!.taskId, '"first"'],
    [calls[1]!.taskId, '"first"'],
    [calls[2]!.taskId, '"second"'],
  ]);
});

test('writes rows again that PostgreSQL lost in a crash', async () => {
  const call = intentOf('deferred-crash', '{}');
  end(ledger.defer(call)!, text('"kept"'));
  await ledger.drain();
  await expect(ledger.confirm(() => Promise.reject(new Error('the connection broke')))).rejects.toThrow('broke');
  await server.database.pool.query(`DELETE FROM session_calls WHERE sid = 'deferred-crash'`);
  await ledger.confirm(async () => {});
  expect(await ledger.find(call.taskId)).toMatchObject({ input: '{}', outcome: { text: '"kept"', reward: 0.5 } });
});

test('a watcher gets the last call before the end of its session, although the end is stored first', async () => {
  const sid = 'deferred-watched';
  // It ends in five seconds, so that a busy machine has time to store the call.
  await server.database.pool.query(
    `INSERT INTO sessions (sid, org_id, user_id, state, version, heartbeat_timeout_ms, idle_timeout_ms, created_at, last_seen_at, last_request_at, ended_at)
     VALUES ($1, 'org', 'user', 'closed', 1, 900000, 900000, now(), now(), now(), now() + interval '5 s')`,
    [sid],
  );
  const told: SessionChanges[] = [];
  const events = new SessionEvents(server.database, createLogger('silent'));
  onTestFinished(events.watch(sid, { version: 0, floor: 0 }, (changes) => void told.push(changes)));
  await expect.poll(() => told.length).toBe(1);
  end(ledger.defer(intentOf(sid, '{}'))!, text('"last"'));
  await expect.poll(() => told.some(({ over }) => over)).toBe(true);
  expect(told.flatMap(({ calls }) => calls.map(({ tool, state }) => [tool, state]))).toEqual([['step', 'result']]);
});

test('drain stores running and ended calls', async () => {
  const calls = [intentOf('deferred-drain', '1'), intentOf('deferred-drain', '2')];
  const [running, ended] = calls.map((call) => ledger.defer(call)!);
  end(ended!, text('"x"'));
  await ledger.drain();
  expect(await ledger.find(calls[0]!.taskId)).toMatchObject({ outcome: null });
  expect(await ledger.find(calls[1]!.taskId)).toMatchObject({ outcome: { text: '"x"' } });
  end(running!, text('"y"'));
  await ledger.drain();
  expect(await ledger.find(calls[0]!.taskId)).toMatchObject({ outcome: { text: '"y"' } });
});

test('refuses calls while too many rows wait', async () => {
  let taken = 0;
  for (let n = 0; n < 10_000; n += 1) {
    const deferred = ledger.defer(intentOf('deferred-many', '{}'));
    if (deferred === null) break;
    taken += 1;
    end(deferred, text('""'));
  }
  expect(taken).toBeGreaterThan(500);
  expect(taken).toBeLessThan(10_000);
  await ledger.drain();
  expect(await ledger.journal('deferred-many')).toHaveLength(taken);
  const more = ledger.defer(intentOf('deferred-many', '{}'));
  expect(more).not.toBeNull();
  end(more!, text('""'));
  await ledger.drain();
});

test('loses only the row whose value PostgreSQL refuses', async () => {
  const { pool } = server.database;
  await pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too odd' USING ERRCODE = '22003'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON session_calls FOR EACH ROW WHEN (NEW.tool = 'odd') EXECUTE FUNCTION refuse()`);
  const lost: string[] = [];
  const own = new SqlCallLedger(pool, (error) => lost.push(String(error)));
  try {
    const calls = ['a', 'b', 'odd', 'c', 'd'].map((tool) => ({ ...intentOf('refused', '{}'), tool }));
    for (const call of calls) end(own.defer(call)!, text('1'));
    await own.drain();
    expect((await own.journal('refused')).map(({ tool }) => tool)).toEqual(['a', 'b', 'c', 'd']);
    expect(lost).toEqual([expect.stringContaining('too odd')]);

    await pool.query(
      `INSERT INTO sessions (sid, org_id, user_id, state, version, heartbeat_timeout_ms, idle_timeout_ms, created_at, last_seen_at, last_request_at)
       VALUES ('asked', 'org', 'user', 'ready', 1, 900000, 900000, now(), now(), now())`,
    );
    const asked = ['a', 'odd', 'c'].map((tool) => own.begin({ ...intentOf('asked', '{}'), tool }, true));
    const answers = await Promise.allSettled(asked);
    expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.verdict : answer.reason.message))).toEqual([
      'started',
      'too odd',
      'started',
    ]);
  } finally {
    // The function too: other files of this worker have one of the same name in this database.
    await pool.query('DROP FUNCTION refuse CASCADE');
  }
});
