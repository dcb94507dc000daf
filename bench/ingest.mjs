// Durable ingest of rollouts over HTTP (authentication, tolerant parsing, resolution of names, fsync) against its bare SQL statement on
// the same PostgreSQL, alternating, so that other load affects both. Also the memory of the service over many rollouts;
// PALESTRA_BENCH_INGESTED: their number.
import path from 'node:path';
import { BATCH_SIZE, EVENT_BYTES, rolloutEvents } from './support/events.mjs';
import { databaseUrl, settled } from './support/postgres.mjs';
import { drain, openPoster } from './support/poster.mjs';
import { apiKey, root } from './support/processes.mjs';
import { median } from './support/rounds.mjs';
import { usageOf } from './support/usage.mjs';

const WORKERS = 8;
const ROUNDS = 5;
/** Posts per round. Rounds are short and many. */
const POSTS = 60;
const ROLLOUTS = Number(process.env.PALESTRA_BENCH_INGESTED ?? 100_000);
/** Events per rollout of the memory test, because rollouts could accumulate, not bytes. */
const SHORT = 5;
/** After the first tenth all permanent data is allocated. */
const PARTS = 10;

async function assertDurable(pool) {
  for (const setting of ['fsync', 'synchronous_commit']) {
    const { rows } = await pool.query('SELECT current_setting($1) AS value', [setting]);
    if (rows[0].value !== 'on') throw new Error(`${setting} is ${rows[0].value}: nothing measured here would be durable`);
  }
}

export async function benchIngest(palestra) {
  const { default: pg } = await import('pg');
  const { storeBatch } = await import(path.join(root, 'apps/api/dist/store/ingest/ingest.sql.js'));
  const { ensureRun } = await import(path.join(root, 'apps/api/dist/store/ingest/ensure-run.sql.js'));
  const { parseTolerant, readBatch } = await import('@palestra/rollouts');
  const pool = new pg.Pool({ connectionString: databaseUrl(palestra.dataDir), max: WORKERS });
  pool.on('error', () => {});
  const poster = openPoster(palestra.url, { 'x-api-key': apiKey }, WORKERS);
  let made = 0;
  const rollout = (size) => rolloutEvents((made += 1), 'ingested', size);
  const bodies = (count, size = BATCH_SIZE) =>
    Array.from({ length: count }, () => JSON.stringify({ events: Array.from({ length: BATCH_SIZE / size }, () => rollout(size)).flat() }));
  try {
    await assertDurable(pool);
    const { rows } = await pool.query('SELECT id FROM organisations ORDER BY created_at LIMIT 1');
    const runSeq = await ensureRun(pool, rows[0].id, 'ingested');
    const overHttp = (body) => poster.send('/v1/rollouts', body);
    const read = (body) => readBatch(parseTolerant(body)).events;
    const bare = (events) => storeBatch(pool, rows[0].id, [{ event: events[0], runSeq }], events, [], async () => new Map());
    const rate = async (jobs, work) => (jobs.length * BATCH_SIZE) / (await drain(jobs, WORKERS, work));
    await drain(bodies(POSTS), WORKERS, overHttp);
    const rounds = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await settled(pool);
      const http = await rate(bodies(POSTS), overHttp);
      await settled(pool);
      const statement = await rate(bodies(POSTS).map(read), bare);
      rounds.push({ http, statement, ratio: http / statement });
    }
    const memory = ROLLOUTS > 0 ? await memoryOver(palestra, bodies, overHttp) : [];
    const best = Math.max(...rounds.map(({ http }) => http));
    return [
      {
        name: `events of ${EVENT_BYTES} B ingested per second, ${BATCH_SIZE} a post, fsync; the bare statement`,
        ours: median(rounds.map(({ http }) => http)),
        theirs: median(rounds.map(({ statement }) => statement)),
        unit: '/s',
        ratio: median(rounds.map(({ ratio }) => ratio)),
        target: 0.5,
      },
      { name: 'the same, the best round', ours: best, unit: '/s', target: null },
      ...memory,
    ];
  } finally {
    poster.close();
    await pool.end();
  }
}

/** Highest resident memory in each tenth of `ROLLOUTS`: the last against the second. */
async function memoryOver(palestra, bodies, post) {
  const highest = [];
  for (let part = 0; part < PARTS; part += 1) {
    let bytes = 0;
    for (let piece = 0; piece < 10; piece += 1) {
      await drain(bodies(ROLLOUTS / PARTS / 10 / (BATCH_SIZE / SHORT), SHORT), WORKERS, post);
      bytes = Math.max(bytes, usageOf(palestra.pid).service.rssBytes);
    }
    highest.push(bytes / 1e6);
  }
  if (process.env.PALESTRA_BENCH_VERBOSE) console.log('memory', highest.map(Math.round).join(' '));
  const [, second] = highest;
  const last = highest.at(-1);
  return [
    {
      name: `memory of the service after ${ROLLOUTS} rollouts; after ${(2 * ROLLOUTS) / PARTS}`,
      ours: last,
      theirs: second,
      unit: 'MB',
      ratio: last / second,
      most: { value: last / second, limit: 1.25, unit: 'times' },
    },
  ];
}
