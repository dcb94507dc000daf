import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { holdLanes, releaseLanes } from '../../support/lanes.ts';
import { lockRun, takeMarks } from '../../../apps/api/src/store/figures/dirty-steps.sql.ts';
import { eraseRollouts } from '../../../apps/api/src/store/storage/erase.sql.ts';
import { settled } from '../../support/derived-rows.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let other: pg.Client;
let runSeq: number;

const eventsOf = (step: number) => {
  const eventId = randomUUID();
  const start = {
    eventType: 'rollout',
    eventId,
    timestamp: 1,
    runName: 'marks',
    environment: 'acme/marks',
    split: 'train',
    metadata: { step },
  };
  const message = { type: 'tool_result', content: 'x', isFinished: true, reward: 1, metadata: {} };
  return [start, { eventType: 'message', eventId: randomUUID(), rolloutEventId: eventId, timestamp: 1, index: 0, ...message }];
};
const sql = async (text: string) => (await server.database.pool.query(text)).rows;
const counts = () => sql(`SELECT step, rollouts FROM step_rollups WHERE env_id = 0 AND run_seq = ${runSeq} ORDER BY step`);
const mark = (step: number) =>
  sql(`INSERT INTO dirty_steps SELECT DISTINCT run_seq, phase, step FROM rollouts WHERE run_seq = ${runSeq} AND step = ${step}`);

beforeAll(async () => {
  server = await sharedServer();
  other = new pg.Client({ connectionString: server.config.databaseUrl! });
  await other.connect();
  await server.request('POST', '/v1/rollouts', { body: { events: [1, 1, 2].flatMap(eventsOf) } });
  await settled(server.database.pool, server.orgName);
  const { rows } = await server.database.pool.query(
    `SELECT r.seq FROM runs r JOIN organisations o ON o.id = r.org_id WHERE r.name = 'marks' AND o.name = $1`,
    [server.orgName],
  );
  runSeq = rows[0].seq;
});
afterAll(async () => {
  await other.end();
  await server.close();
});

it('a marked step that a transaction changes is computed after the transaction', async () => {
  expect(await counts()).toEqual([
    { step: 1, rollouts: 2 },
    { step: 2, rollouts: 1 },
  ]);
  const [{ seq }] = await sql(`SELECT seq FROM rollouts WHERE run_seq = ${runSeq} AND step = 1 ORDER BY seq LIMIT 1`);
  await holdLanes(other);
  await mark(1);
  await other.query('BEGIN');
  await eraseRollouts(other, [seq], true);
  await releaseLanes(other);
  await mark(2);
  await expect.poll(() => sql(`SELECT FROM dirty_steps WHERE run_seq = ${runSeq} AND step = 2`), { timeout: 20_000 }).toEqual([]);
  await other.query('COMMIT');
  await settled(server.database.pool, server.orgName);
  expect(await counts()).toEqual([
    { step: 1, rollouts: 1 },
    { step: 2, rollouts: 1 },
  ]);
});

it('a rollout of a step whose figures are being computed does not wait for them, and counts afterwards', async () => {
  const [{ rollouts }] = await counts();
  await holdLanes(other);
  await mark(1);
  await other.query('BEGIN');
  await lockRun(other, runSeq);
  expect(await takeMarks(other, runSeq, { vast: false, without: [] }, 50)).toMatchObject([{ step: 1 }]);
  await releaseLanes(other);
  await server.request('POST', '/v1/rollouts', { body: { events: eventsOf(1) } });
  const dirty = () => sql(`SELECT FROM rollout_heads WHERE run_seq = ${runSeq} AND dirty`);
  await expect.poll(dirty, { timeout: 20_000 }).toEqual([]);
  await other.query('COMMIT');
  await settled(server.database.pool, server.orgName);
  expect((await counts())[0]).toEqual({ step: 1, rollouts: rollouts + 1 });
});
