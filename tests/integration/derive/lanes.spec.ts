import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Database } from '../../../apps/api/src/platform/database/database.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { Metrics } from '../../../apps/api/src/platform/telemetry/metrics.ts';
import { ROWS } from '../../../apps/api/src/store/derive/derive.loop.ts';
import { DeriveService } from '../../../apps/api/src/store/derive/derive.service.ts';
import { isBehind, selectDirty, selectDueLanes } from '../../../apps/api/src/store/derive/derive.sql.ts';
import { LANE_LOCK, LaneLocks } from '../../../apps/api/src/store/derive/lane-locks.ts';
import { selectUnsearched } from '../../../apps/api/src/store/derive/search/search-index.sql.ts';
import { Quarantine } from '../../../apps/api/src/store/quarantine.ts';
import { TranscriptObjects } from '../../../apps/api/src/store/storage/transcript-objects.service.ts';
import { TranscriptReader } from '../../../apps/api/src/store/storage/transcript-reader.service.ts';
import { settled } from '../../support/derived-rows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { killed, spawnWorker } from '../../support/worker.ts';

let server: TestServer;
let other: pg.Client;
beforeAll(async () => {
  server = await startServer({ jobs: 'off' });
  other = new pg.Client({ connectionString: server.config.databaseUrl! });
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await server.close();
});

/** Connections that hold lanes of narrow rows, one for each lane. */
const holders = async (): Promise<number[]> => {
  const { rows } = await other.query(
    `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objsubid = 2 AND granted AND objid::int = ANY($2::int[])
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [LANE_LOCK, ROWS],
  );
  return rows.map(({ pid }) => pid as number);
};
const countOf = async (table: string) => Number((await other.query(`SELECT count(*) AS n FROM ${table}`)).rows[0].n);

async function upload(run: string, rollouts: number): Promise<void> {
  const events = Array.from({ length: rollouts }, () => ({
    eventType: 'rollout',
    eventId: randomUUID(),
    timestamp: 1,
    runName: run,
    environment: 'acme/lanes',
    split: 'train',
    metadata: { phase: 'train', current_step: 1 },
  }));
  expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
}

test('a lane belongs to one process at a time, and its lock ends with the connection', async () => {
  const databases = [new Database(server.config.databaseUrl!, 2), new Database(server.config.databaseUrl!, 2)];
  const [first, second] = databases.map((database) => new LaneLocks(database));
  const answer = await first!.withLane(1, async () => {
    expect(await first!.withLane(1, () => Promise.resolve('again'))).toBeNull();
    expect(await second!.withLane(1, () => Promise.resolve('taken'))).toBeNull();
    expect(await second!.withLane(2, () => Promise.resolve('free'))).toBe('free');
    const [pid] = await holders();
    await other.query('SELECT pg_terminate_backend($1)', [pid]);
    await expect.poll(() => second!.withLane(1, () => Promise.resolve('handed over'))).toBe('handed over');
    return 'done';
  });
  expect(answer).toBe('done');
  expect(await first!.withLane(1, () => Promise.resolve('connected again'))).toBe('connected again');
  await expect(first!.withLane(1, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await second!.withLane(1, () => Promise.resolve('released'))).toBe('released');
  await Promise.all([first!.close(), second!.close(), ...databases.map((database) => database.close())]);
});

test('a lane without progress does not hide the lanes of later rollouts', async () => {
  const { pool } = server.database;
  await upload('stuck', 960);
  const { rowCount } = await other.query('UPDATE rollout_heads SET dirty = false WHERE seq % 8 <> 3');
  expect(960 - rowCount!).toBeGreaterThan(100);
  await upload('later', 8);
  expect(await selectDueLanes(pool, 8, [])).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  const waiting = 960 - rowCount! + 8;
  expect([await isBehind(pool, waiting - 1, []), await isBehind(pool, waiting, [])]).toEqual([true, false]);

  await other.query('UPDATE rollout_heads SET dirty = (seq % 8 = 3 AND seq IN (SELECT seq FROM rollout_heads WHERE dirty LIMIT 50))');
  expect(await selectDueLanes(pool, 8, [])).toEqual([3]);
  await other.query('UPDATE rollout_heads SET dirty = false');
});

test('two processes share the lanes, and one that is killed leaves its lanes to the other', { timeout: 240_000 }, async () => {
  // Both processes wait with their batches until the table is unlocked.
  await other.query('BEGIN; LOCK TABLE rollouts IN EXCLUSIVE MODE');
  await upload('shared', 400);
  const { databaseUrl, dataDir } = server.config;
  const first = await spawnWorker(databaseUrl!, dataDir);
  const waiting = { timeout: 60_000, interval: 50 };
  await expect.poll(async () => (await holders()).length, waiting).toBe(2);
  const [dying] = await holders();
  const second = await spawnWorker(databaseUrl!, dataDir);
  await expect.poll(async () => new Set(await holders()).size, waiting).toBe(2);

  await killed(first);
  await expect.poll(async () => (await holders()).includes(dying!), waiting).toBe(false);
  expect(second.exitCode).toBeNull();
  await other.query('COMMIT');
  await settled(server.database.pool);
  expect(await countOf('rollouts')).toBe(400);
});

/** As SkyRL uploads it: its last turn made a call, and the limit of turns is not told. */
function skyrl(turns: number): object[] {
  const id = randomUUID();
  const callId = createHash('md5').update(`${turns}:submit`).digest('hex').slice(0, 12);
  const message = { eventType: 'message', rolloutEventId: id, timestamp: 2, isFinished: false, metadata: {} };
  const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName: 'skyrl', rolloutName: 'acme-lanes-train-1' };
  const metadata = { stop_reason: 'finished', total_reward: 0, num_turns: turns };
  return [
    { ...start, environment: 'acme/lanes', split: 'train', metadata },
    { ...message, eventId: randomUUID(), index: 0, type: 'tool_call', name: 'submit', callId, content: '{}' },
    { ...message, eventId: randomUUID(), index: 1, type: 'tool_result', callId, content: 'noted' },
  ];
}

test('the first rollouts of a run are compared with the longest one, also if two lanes derive them at the same time', async () => {
  const { pool } = server.database;
  const events = [2, 3].flatMap(skyrl);
  expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
  const transcripts = new TranscriptReader(server.database, new TranscriptObjects({} as never));
  const quarantine = new Quarantine(new Metrics(), createLogger('silent'));
  const derive = new DeriveService(server.database, {} as never, quarantine, transcripts, server.config);
  const { rows } = await pool.query(
    `SELECT h.seq::text FROM rollout_heads h JOIN runs r ON r.seq = h.run_seq WHERE r.name = 'skyrl' ORDER BY h.seq`,
  );
  expect(rows).toHaveLength(2);
  // Both have read by then what the run has.
  await other.query('BEGIN; LOCK TABLE rollouts IN EXCLUSIVE MODE');
  const derived = Promise.all(rows.map(({ seq }) => derive.settleRollout(seq)));
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(2);
  await other.query('COMMIT');
  await derived;
  const { rollouts } = (await server.request('GET', '/v1/runs/skyrl/rollouts')).body;
  const stops = rollouts.map(({ turns, stop }: { turns: number; stop: string }) => `${turns} ${stop}`);
  expect(stops.toSorted()).toEqual(['2 context_length', '3 max_turns']);
});

test('a rollout of very many messages does not hinder the choice of others', async () => {
  await upload('vast', 3);
  const client = await server.database.pool.connect();
  const pool = client as unknown as pg.Pool;
  const [lane, range] = [
    { number: 0, of: 1 },
    { after: 0, until: 1_000_000 },
  ];
  try {
    await client.query('BEGIN; UPDATE rollout_heads SET dirty = false, unsearched = false');
    const { rows } = await client.query<{ seq: string }>(
      `UPDATE rollout_heads h SET dirty = true, unsearched = true, messages = CASE h.seq WHEN last THEN 2000000000 ELSE 0 END
       FROM (SELECT seq, max(seq) OVER () AS last FROM rollout_heads ORDER BY seq DESC LIMIT 3) n WHERE h.seq = n.seq RETURNING h.seq::text`,
    );
    const others = rows
      .map(({ seq }) => seq)
      .toSorted((a, b) => Number(a) - Number(b))
      .slice(0, 2);
    const dirty = await selectDirty(pool, { lane, range }, { limit: 400, bytes: 1_000_000, sealed: true, without: [] });
    expect(dirty.map(({ seq }) => seq)).toEqual(others);
    const unsearched = await selectUnsearched(pool, 200, 1_000_000, { ...lane, ...range }, []);
    expect(unsearched.map(({ seq }) => seq)).toEqual(others);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});
