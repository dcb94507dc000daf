// What an insert costs as the table of messages grows: the same posts' statement, and the posts, at 10^4, 10^5, ... stored messages, against
// the first. PALESTRA_BENCH_MESSAGES: the largest, default 10 000 000 (about 3 GB); what is between is filled by INSERT..SELECT into the
// same partition and indexes, with words.
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
/** Messages of a filled rollout, and of one statement that fills. */
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

/** Milliseconds of a batch: its statement by itself, and the whole post. In turns; the median of the rounds. */
async function costs({ pool, poster, bare, bodies, read }) {
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await settled(pool);
    const statement = await drain(bodies().map(read), WORKERS, bare);
    await settled(pool);
    const post = await drain(bodies(), WORKERS, (body) => poster.send('/v1/rollouts', body));
    rounds.push({ statement: (statement / POSTS) * 1000, post: (post / POSTS) * 1000 });
  }
  return { statement: median(rounds.map((round) => round.statement)), post: median(rounds.map((round) => round.post)) };
}

export async function benchFlat() {
  const { default: pg } = await import('pg');
  const { storeBatch } = await import(path.join(root, 'apps/api/dist/rollouts/ingest/ingest.sql.js'));
  const { ensureRun } = await import(path.join(root, 'apps/api/dist/runs/run.sql.js'));
  const { parseTolerant, readBatch } = await import('@palestra/rollouts');
  const palestra = await startPalestra();
  const pool = new pg.Pool({ connectionString: databaseUrl(palestra.dataDir), max: WORKERS });
  pool.on('error', () => {});
  const poster = openPoster(palestra.url, { 'x-api-key': apiKey }, WORKERS);
  try {
    const { rows } = await pool.query('SELECT id FROM organisations ORDER BY created_at LIMIT 1');
    const orgId = rows[0].id;
    const runSeq = await ensureRun(pool, orgId, 'ingested');
    let made = 0;
    const bodies = () => Array.from({ length: POSTS }, () => JSON.stringify({ events: rolloutEvents((made += 1)) }));
    const sides = {
      pool,
      poster,
      bodies,
      read: (body) => readBatch(parseTolerant(body)).events,
      bare: (events) => storeBatch(pool, orgId, [{ event: events[0], runSeq }], events),
    };
    const stored = async () => (await pool.query('SELECT COALESCE(sum(messages), 0)::int AS stored FROM rollout_heads')).rows[0].stored;
    const points = [];
    for (let mark = SMALLEST; mark <= LARGEST; mark *= 10) {
      for (let missing = mark - (await stored()); missing >= EACH; missing = mark - (await stored()))
        await pool.query(FILL, [orgId, runSeq, Math.min(missing, FILLED_AT_ONCE)]);
      await pool.query('ANALYZE rollout_heads, rollout_messages');
      await pool.query('CHECKPOINT');
      points.push({ mark, ...(await costs(sides)) });
      if (process.env.PALESTRA_BENCH_VERBOSE) console.log(points.at(-1));
    }
    const row = (name, key, { mark, ...cost }) => ({
      name: `${name} of ${BATCH_SIZE} events with ${mark.toLocaleString('en').replaceAll(',', ' ')} messages stored`,
      ours: cost[key],
      theirs: points[0][key],
      unit: 'ms',
      ratio: cost[key] / points[0][key],
      most: { value: cost[key] / points[0][key], limit: 1.5, unit: 'times' },
    });
    return [...points.map((point) => row('statement', 'statement', point)), ...points.map((point) => row('post', 'post', point))];
  } finally {
    poster.close();
    await pool.end();
    await palestra.stop();
  }
}
