// Durable ingest of rollouts over HTTP against the floor: a separate PostgreSQL with default settings, one table, and one statement for each batch.
// Both take 100 events of 1 kB at a time on 32 connections, alternating, so that other load affects both. PALESTRA_BENCH_INGEST_ROUNDS,
// PALESTRA_BENCH_INGEST_POSTS (per round): length.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { drain, openClient } from './support/client.mjs';
import { BATCH_SIZE, EVENT_BYTES, rolloutEvents } from './support/events.mjs';
import { atMost, median, shown } from './support/figures.mjs';
import { apiKey, discard, freePort, root, startPalestra } from './support/processes.mjs';
import { settled } from './support/store.mjs';
import { usageOf } from './support/usage.mjs';

const CONNECTIONS = 32;
const ROUNDS = Number(process.env.PALESTRA_BENCH_INGEST_ROUNDS ?? 6);
const POSTS = Number(process.env.PALESTRA_BENCH_INGEST_POSTS ?? 320);
const RUN = 'ingested';

const TABLE = `CREATE TABLE events (event_id uuid PRIMARY KEY, event_type text, rollout_event_id uuid, index int, sent_at bigint, type text,
  content text, metadata jsonb)`;
const INSERT = `INSERT INTO events
  SELECT e."eventId", e."eventType", e."rolloutEventId", e.index, e.timestamp, e.type, COALESCE(e.content, e.task_spec::text), e.metadata
  FROM jsonb_to_recordset($1) AS e("eventId" uuid, "eventType" text, "rolloutEventId" uuid, index int, timestamp bigint, type text, content text,
    task_spec jsonb, metadata jsonb) ON CONFLICT DO NOTHING`;

/** The binaries of PostgreSQL that the service brings, with default settings. */
async function startFloor() {
  const { PostgresServer } = await import(path.join(root, 'apps/api/dist/platform/database/postgres-server.js'));
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-floor-'));
  const password = 'floor';
  const postgresFlags = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
  const server = new PostgresServer({ databaseDir: path.join(folder, 'data'), choosePort: freePort, password, postgresFlags });
  await server.initialise();
  await server.start();
  const connectionString = `postgresql://postgres:${password}@127.0.0.1:${server.port}/postgres`;
  const pool = new pg.Pool({ connectionString, max: CONNECTIONS });
  pool.on('error', () => {});
  await pool.query(TABLE);
  for (const setting of ['fsync', 'synchronous_commit']) {
    const { rows } = await pool.query('SELECT current_setting($1) AS value', [setting]);
    if (rows[0].value !== 'on') throw new Error(`${setting} of the floor is ${rows[0].value}: it would not be durable`);
  }
  return {
    insert: (events) => pool.query({ name: 'insert', text: INSERT, values: [events] }),
    count: async () => Number((await pool.query('SELECT count(*) FROM events')).rows[0].count),
    async stop() {
      await pool.end();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a separate service, because the large rollouts here would change the disk figures of short ones. */
export async function benchIngest() {
  const floor = await startFloor();
  const palestra = await startPalestra();
  const client = openClient(palestra.url, { 'x-api-key': apiKey }, CONNECTIONS);
  let made = 0;
  let refusals = 0;
  let floorEvents = 0;
  const batches = () => Array.from({ length: POSTS }, () => JSON.stringify(rolloutEvents((made += 1), RUN)));
  const rate = async (jobs, work) => (jobs.length * BATCH_SIZE) / (await drain(jobs, CONNECTIONS, work));
  const overHttp = async () =>
    rate(
      batches().map((events) => `{"events":${events}}`),
      async (body) => (refusals += await client.upload(body)),
    );
  const overFloor = async () => {
    floorEvents += POSTS * BATCH_SIZE;
    const events = await rate(batches(), floor.insert);
    return events;
  };
  try {
    let uploaded = 0;
    const settle = async () => settled(client, RUN, uploaded);
    const round = async () => {
      const http = await overHttp();
      uploaded += POSTS;
      const megabytes = usageOf(palestra.pid).service.rssBytes / 1e6;
      await settle();
      const bare = await overFloor();
      return { http, bare, megabytes };
    };
    await round();
    const rounds = [];
    for (let at = 0; at < ROUNDS; at += 1) rounds.push(await round());
    if ((await floor.count()) !== floorEvents) throw new Error('the floor did not store every event');
    const [first, last] = [rounds[0].megabytes, rounds.at(-1).megabytes];
    const middle = rounds[Math.floor(ROUNDS / 2)].megabytes;
    return [
      {
        name: `events of ${EVENT_BYTES} B per second, ${BATCH_SIZE} a post, ${CONNECTIONS} connections; the floor`,
        ours: median(rounds.map(({ http }) => http)),
        theirs: median(rounds.map(({ bare }) => bare)),
        unit: '/s',
        ratio: median(rounds.map(({ http, bare }) => http / bare)),
        target: 0.5,
      },
      shown('lowest and highest ratio of a round: lowest', Math.min(...rounds.map(({ http, bare }) => http / bare)), '×'),
      shown('lowest and highest ratio of a round: highest', Math.max(...rounds.map(({ http, bare }) => http / bare)), '×'),
      shown('posts that were refused and sent again', refusals, ''),
      shown('memory of the API after the first round', first, 'MB'),
      shown('memory of the API after half of the rounds', middle, 'MB'),
      shown('memory of the API after the last round', last, 'MB'),
      atMost(1.25, 'memory of the API, last against first', last / first, 'times'),
    ];
  } finally {
    client.close();
    await discard(palestra);
    await floor.stop();
  }
}
