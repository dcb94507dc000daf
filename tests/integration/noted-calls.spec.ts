import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallIntent, CallOutcome } from '@palestra/session';
import { SqlCallLedger } from '../../apps/api/src/sessions/call-ledger.sql.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** Calls that nobody can come back for are written with their outcomes; on the real PostgreSQL. */
let server: TestServer;
let ledger: SqlCallLedger;
beforeAll(async () => {
  server = await startServer();
  ledger = new SqlCallLedger(server.database.pool);
});
afterAll(() => server?.close());

const intentOf = (sid: string, input: string): CallIntent => {
  const taskId = randomBytes(16).toString('hex');
  return { taskId, sid, kind: 'call', tool: 'step', input, replicaId: 'here', startedAt: Date.now() };
};
const text = (value: string): CallOutcome => ({ type: 'result', text: value, ok: true, reason: null, reward: 0.5, finished: false });
const end = (call: CallIntent, outcome: CallOutcome, soon = false) =>
  ledger.result({ taskId: call.taskId, outcome, failureClass: 'ok', endedAt: Date.now() }, soon);

test('one row each, in the order in which they ended', async () => {
  const calls = Array.from({ length: 40 }, (_, n) => intentOf('noted-order', `{"n":${n}}`));
  const written = calls.map((call, n) => {
    expect(ledger.note(call)).toBe(true);
    return end(call, text(`"${n}"`));
  });
  await Promise.all(written);
  const journal = await ledger.journal('noted-order');
  expect(journal.map(({ input, outcome }) => [input, (outcome as { text: string }).text])).toEqual(
    calls.map(({ input }, n) => [input, `"${n}"`]),
  );
  expect(journal[0]).toMatchObject({ replicaId: 'here', failureClass: 'ok', outcome: { reward: 0.5, ok: true, finished: false } });
  expect(journal[0]!.endedAt).toBeGreaterThanOrEqual(journal[0]!.startedAt);
});

test('one that takes long is seen while it runs, and has one outcome', async () => {
  const call = intentOf('noted-long', '{}');
  ledger.note(call);
  await expect.poll(() => ledger.find(call.taskId), { timeout: 20_000 }).toMatchObject({ outcome: null, sid: 'noted-long' });
  await end(call, { type: 'tool_failed', message: 'it broke' });
  expect(await ledger.find(call.taskId)).toMatchObject({ outcome: { type: 'tool_failed', message: 'it broke' } });
  expect(await server.database.pool.query(`SELECT FROM session_calls WHERE sid = 'noted-long'`)).toMatchObject({ rowCount: 1 });
});

test('one that ends while it is being written as one that runs has its outcome all the same', async () => {
  const calls = Array.from({ length: 200 }, () => intentOf('noted-race', '{}'));
  for (const call of calls) ledger.note(call);
  const drained = ledger.drain();
  await Promise.all(calls.map((call) => end(call, text('"late"'))));
  await drained;
  expect((await ledger.journal('noted-race')).map(({ outcome }) => outcome)).toEqual(calls.map(() => text('"late"')));
});

test('draining writes what runs, and what has ended', async () => {
  const [running, ended] = [intentOf('noted-drain', '1'), intentOf('noted-drain', '2')];
  ledger.note(running);
  ledger.note(ended);
  const written = end(ended, text('"x"'));
  await ledger.drain();
  expect(await ledger.find(running.taskId)).toMatchObject({ outcome: null });
  expect(await ledger.find(ended.taskId)).toMatchObject({ outcome: { text: '"x"' } });
  await written;
  await end(running, text('"y"'), true);
  expect(await ledger.find(running.taskId)).toMatchObject({ outcome: { text: '"y"' } });
});

test('it takes no more than a bounded number behind', async () => {
  const calls = Array.from({ length: 3_000 }, () => intentOf('noted-many', '{}'));
  const writes: Promise<void>[] = [];
  let taken = 0;
  for (const call of calls) {
    if (!ledger.note(call)) break;
    taken += 1;
    writes.push(end(call, text('""')));
  }
  expect(taken).toBeGreaterThan(500);
  expect(taken).toBeLessThan(calls.length);
  await Promise.all(writes);
  expect(await ledger.journal('noted-many')).toHaveLength(taken);
  expect(ledger.note(intentOf('noted-many', '{}'))).toBe(true);
  await ledger.drain();
});
