// The cost of an insert as the table of messages grows: the statement of a batch and its whole post, with 10^5, 10^6, ... stored
// messages, against a second service that starts with 10^4 (and receives the measured batches, another 10^4), alternating.
// PALESTRA_BENCH_MESSAGES: the largest size, default 10 000 000 (about 3 GB). INSERT..SELECT fills the sizes between into the same
// partition and indexes, with words.
import path from 'node:path';
import { BATCH_SIZE, rolloutEvents } from './support/events.mjs';
import { databaseUrl, settled } from './support/postgres.mjs';
import { drain, openPoster } from './support/poster.mjs';
import { apiKey, root, startPalestra } from './support/processes.mjs';
import { median } from './support/rounds.mjs';

const LARGEST = Number(process.env.PALESTRA_BENCH_MESSAGES ?? 10_000_000);
const SMALLEST = 10_000;
const POSTS = 10;
const ROUNDS = 7;
const WORKERS = 2;
/** Messages of a filled rollout, and of one filling statement. */
const EACH = 100;
const FILLED_AT_ONCE = 500_000;

const FILL = `
WITH head AS (
  INSERT INTO rollout_heads (org_id, id, day, run_seq, messages, calls, max_index, bytes, finished, dirty, unsearched, unverified, unsealed)
  SELECT $1, gen_random_uuid(), (now() AT TIME ZONE 'UTC')::date, $2, ${EACH}, 33, ${EACH - 1}, ${EACH * 150}, true, false, false, false, false
  FROM generate_series(1, $3::int / ${EACH}) RETURNING seq, day)
INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, sent_at, name, call_id, content)
SELECT day, seq, gen_random_uuid(), i, 150, i = ${EACH - 1}, (ARRAY['assistant_message', 'tool_call', 'tool_result'])[1 + i % 3], 1700000000000 + i,
  CASE WHEN i % 3 > 0 THEN 'search' END, CASE WHEN i % 3 > 0 THEN 'call_' || i / 3 END,
  'the model looks at line ' || i || ' of what came back ' || md5((seq * ${EACH} + i)::text) || ' and writes an answer that the environment scores against the one it knows'
FROM head, generate_series(0, ${EACH - 1}) i`;

/** A service with its own store. */
async function openSide({ pg, ingest, runs, rollouts }) {
  const palestra = await startPalestra();
  const pool = new pg.Pool({ connectionString: databaseUrl(palestra.dataDir), max: WORKERS });
  pool.on('error', () => {});
  const poster = openPoster(palestra.url, { 'x-api-key': apiKey }, WORKERS);
  const { rows } = await pool.query('SELECT id FROM organisations ORDER BY created_at LIMIT 1');
  const orgId = rows[0].id;
  const runSeq = await runs.ensureRun(pool, orgId, 'ingested');
  let made = 0;
  const bodies = () => Array.from({ length: POSTS }, () => JSON.stringify({ events: rolloutEvents((made += 1)) }));
  const read = (body) => rollouts.readBatch(rollouts.parseTolerant(body)).events;
  const stored = async () => (await pool.query('SELECT COALESCE(sum(messages), 0)::int AS stored FROM rollout_heads')).rows[0].stored;
  return {
    fill: async (mark) => {
      for (let missing = mark - (await stored()); missing >= EACH; missing = mark - (await stored()))
        await pool.query(FILL, [orgId, runSeq, Math.min(missing, FILLED_AT_ONCE)]);
      await settled(pool);
      await pool.query('VACUUM (ANALYZE) rollout_heads, rollout_messages');
      await pool.query('CHECKPOINT');
    },
    /** Milliseconds of a batch: its statement, or the whole post. */
    statement: async () => {
      await settled(pool);
      const events = bodies().map(read);
      return (
        (await drain(events, WORKERS, (batch) =>
          ingest.storeBatch(pool, orgId, [{ event: batch[0], runSeq }], batch, [], async () => new Map()),
        )) *
        (1000 / POSTS)
      );
    },
    post: async () => {
      await settled(pool);
      return (await drain(bodies(), WORKERS, (body) => poster.send('/v1/rollouts', body))) * (1000 / POSTS);
    },
    stop: async () => {
      poster.close();
      await pool.end();
      await palestra.stop();
    },
  };
}

/** Median cost of both sides, measured alternately, and the median of the ratios. */
async function compare(large, small, kind) {
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const theirs = await small[kind]();
    const ours = await large[kind]();
    rounds.push({ ours, theirs, ratio: ours / theirs });
  }
  return Object.fromEntries(['ours', 'theirs', 'ratio'].map((key) => [key, median(rounds.map((round) => round[key]))]));
}

export async function benchFlat() {
  const modules = {
    pg: (await import('pg')).default,
    ingest: await import(path.join(root, 'apps/api/dist/store/ingest/ingest.sql.js')),
    runs: await import(path.join(root, 'apps/api/dist/store/ingest/ensure-run.sql.js')),
    rollouts: await import('@palestra/rollouts'),
  };
  const large = await openSide(modules);
  const small = await openSide(modules);
  const rows = [];
  try {
    await small.fill(SMALLEST);
    for (const side of [large, small]) for (const kind of ['statement', 'post']) await side[kind]();
    for (let mark = SMALLEST * 10; mark <= LARGEST; mark *= 10) {
      await large.fill(mark);
      for (const kind of ['statement', 'post']) {
        const { ours, theirs, ratio } = await compare(large, small, kind);
        const name = `${kind} of ${BATCH_SIZE} events with ${mark.toLocaleString('en').replaceAll(',', ' ')} messages stored; with ${SMALLEST.toLocaleString('en').replaceAll(',', ' ')}`;
        rows.push({ name, ours, theirs, unit: 'ms', ratio, most: { value: ratio, limit: 1.5, unit: 'times' } });
        if (process.env.PALESTRA_BENCH_VERBOSE) console.log(name, ours, theirs, ratio);
      }
    }
    return rows;
  } finally {
    await Promise.all([large.stop(), small.stop()]);
  }
}
