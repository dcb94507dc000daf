import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clearDue, markDue, withInferenceLock, writeInferred, selectArrivals } from '../../../apps/api/src/store/derive/infer.sql.ts';
import { markRuns } from '../../../apps/api/src/store/derive/derive.sql.ts';
import { inTransaction } from '../../../apps/api/src/platform/database/transaction.ts';
import { eraseRollouts } from '../../../apps/api/src/store/storage/erase.sql.ts';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** What uploads, deriving and inference do to each other's rows at the same moment. */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

const sql = async (text: string, values: unknown[] = []) => (await server.database.pool.query(text, values)).rows;
const runOf = async (name: string) =>
  (
    await sql('SELECT r.seq FROM runs r JOIN organisations o ON o.id = r.org_id WHERE r.name = $1 AND o.name = $2', [name, server.orgName])
  )[0].seq as number;
const start = (eventId: string, runName: string) => ({
  eventType: 'rollout',
  eventId,
  timestamp: 1,
  runName,
  rolloutName: 'acme-told-train-3',
  environment: 'acme/told',
  split: 'train',
  // As SkyRL uploads: steps are for inference.
  metadata: { stop_reason: 'finished', total_reward: 1, num_turns: 1 },
});
const message = (rolloutEventId: string, index: number) => ({
  eventType: 'message',
  eventId: randomUUID(),
  rolloutEventId,
  timestamp: 2,
  index,
  type: 'assistant_message',
  content: 'hm',
  isFinished: false,
  metadata: {},
});
/** Until nothing in the background locks the rollouts of a run. */
async function atRest(run: string): Promise<void> {
  await settled(server.database.pool, server.orgName);
  const unsearched = `SELECT FROM rollout_heads WHERE unsearched AND run_seq = ${await runOf(run)}`;
  await expect.poll(() => sql(unsearched)).toEqual([]);
}
const post = (events: object[]) => server.request('POST', '/v1/rollouts', { body: { events } });
/** Waits until another connection waits for a lock of this one. */
async function untilBlocking(client: pg.PoolClient) {
  const { pid } = (await client.query('SELECT pg_backend_pid() AS pid')).rows[0];
  const waiting = () => sql('SELECT pid FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))', [pid]);
  await expect.poll(waiting, { timeout: 20_000 }).toHaveLength(1);
}

test('a batch that PostgreSQL rolls back in a deadlock is stored', { timeout: 60_000 }, async () => {
  const [low, high] = [randomUUID(), randomUUID()].toSorted();
  expect(await post([start(low!, 'contended'), start(high!, 'contended')])).toMatchObject({ status: 200 });
  await atRest('contended');
  const lock = 'SELECT FROM rollout_heads WHERE id = $1 FOR UPDATE';
  const answer = await inTransaction(server.database.pool, async (client) => {
    // The other one looks for the deadlock first, and is the one that is given up.
    await client.query(`SET LOCAL deadlock_timeout = '50s'`);
    await client.query(lock, [high]);
    const posted = post([message(low!, 0), message(high!, 0)]);
    await untilBlocking(client);
    await client.query(lock, [low]);
    return { posted };
  });
  const { status, body } = await answer.posted;
  expect({ status, body }).toEqual({ status: 200, body: expect.objectContaining({ accepted: 2, duplicates: 0, rejected: [] }) });
  expect(await sql('SELECT messages FROM rollout_heads WHERE id = ANY($1::uuid[])', [[low, high]])).toEqual([
    { messages: 1 },
    { messages: 1 },
  ]);
});

test('marking a run locks heads in the order of uploads', { timeout: 60_000 }, async () => {
  // Stored so that seq order is not id order.
  const [low, high] = [randomUUID(), randomUUID()].toSorted();
  for (const id of [high, low]) expect(await post([start(id!, 'ordered')])).toMatchObject({ status: 200 });
  await atRest('ordered');
  const seq = await runOf('ordered');
  const revisions = async () =>
    (await sql('SELECT revision FROM rollout_heads WHERE run_seq = $1 ORDER BY id', [seq])).map(({ revision }) => revision);
  const before = await revisions();
  const marking = await inTransaction(server.database.pool, async (client) => {
    await client.query(`SET LOCAL deadlock_timeout = '50s'`);
    await client.query('SELECT FROM rollout_heads WHERE id = $1 FOR UPDATE', [low]);
    const done = markRuns(server.database.pool, [seq]);
    await untilBlocking(client);
    // Nobody waits for the one that is ours, and holds this one.
    await client.query('SELECT FROM rollout_heads WHERE id = $1 FOR UPDATE NOWAIT', [high]);
    return { done };
  });
  await marking.done;
  expect(await revisions()).toEqual(before.map((revision) => revision + 1));
});

test('inference does not overwrite later results of a rollout', { timeout: 60_000 }, async () => {
  // Heads are made, and numbered, in id order.
  const [kept, grown] = [randomUUID(), randomUUID()].toSorted() as [string, string];
  expect(await post([start(kept, 'inferred'), message(kept, 0), start(grown, 'inferred')])).toMatchObject({ status: 200 });
  await settled(server.database.pool, server.orgName);
  const seq = await runOf('inferred');
  const rows = () => sql('SELECT id, revision, step, provenance FROM rollouts WHERE run_seq = $1 ORDER BY seq', [seq]);
  const bits = { mask: 3, inferred: 1, kept: 0xc03f };
  const { pool } = server.database;
  await withInferenceLock(pool, seq, async (client) => {
    expect(await clearDue(client, seq)).toBe(false);
    const arrivals = await selectArrivals(client, seq, bits.mask, bits.inferred);
    expect(arrivals).toHaveLength(2);
    // A verdict comes for one, messages for the other.
    await sql('UPDATE rollouts SET provenance = provenance | 65536 WHERE id = $1', [kept]);
    expect(await post([message(grown, 0), message(grown, 1)])).toMatchObject({ status: 200 });
    await expect.poll(async () => (await rows())[1].revision, { timeout: 20_000 }).toBeGreaterThan(arrivals[1]!.revision);
    const before = await rows();
    const written = arrivals.map((row) => ({ ...row, step: 70, group_key: '1', sample_idx: 0, provenance: row.provenance | 0x15 }));
    await writeInferred(client, seq, written, bits, {});
    const after = await rows();
    expect(after[0]).toEqual({ ...before[0], step: 70, provenance: before[0].provenance | 0x15 });
    expect(after[0].provenance & 65_536).toBe(65_536);
    expect(after[1]).toEqual(before[1]);
  });
  // Whoever was changed is due again, and its run comes to rest.
  await settled(pool, server.orgName);
  expect((await rows()).map(({ step }) => step)).not.toContain(70);
});

test('inference does not begin with rollouts that are being erased, although their run is due already', { timeout: 60_000 }, async () => {
  const [kept, gone] = [randomUUID(), randomUUID()];
  expect(await post([start(kept, 'erased'), start(gone, 'erased')])).toMatchObject({ status: 200 });
  await atRest('erased');
  const seq = await runOf('erased');
  const { pool } = server.database;
  const [{ seq: erased }] = await sql('SELECT seq FROM rollout_heads WHERE id = $1', [gone]);
  await withInferenceLock(pool, seq, async (client) => {
    await markDue(client, seq);
    const { cleared } = await inTransaction(pool, async (eraser) => {
      await eraseRollouts(eraser, [erased], true);
      const clearing = clearDue(client, seq);
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%inference_due = false%'`;
      await expect.poll(() => sql(waiting)).toHaveLength(1);
      return { cleared: clearing };
    });
    expect(await cleared).toBe(true);
    expect(await selectArrivals(client, seq, 3, 1)).toHaveLength(1);
    await markDue(client, seq);
  });
  await settled(pool, server.orgName);
});

test('two processes never infer the steps of one run at the same time', { timeout: 60_000 }, async () => {
  const order: string[] = [];
  const { pool } = server.database;
  let release: () => void = () => {};
  let holder: pg.PoolClient;
  const first = withInferenceLock(pool, 99, async (client) => {
    holder = client;
    order.push('first begins');
    await new Promise<void>((resolve) => (release = resolve));
    order.push('first ends');
  });
  await expect.poll(() => order, { timeout: 20_000 }).toEqual(['first begins']);
  const second = withInferenceLock(pool, 99, async () => void order.push('second begins'));
  await withInferenceLock(pool, 98, async () => void order.push('another run'));
  await untilBlocking(holder!);
  release();
  await Promise.all([first, second]);
  expect(order).toEqual(['first begins', 'another run', 'first ends', 'second begins']);
});
