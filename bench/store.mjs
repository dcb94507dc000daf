// The rollout store with one large run (fixture F1: seeded, 500 steps, 3 environments, groups of 8, 2 % errors, rewards that are missing):
// reads over HTTP, one dirty step made again, and what an insert costs as the table of messages grows.
// BENCH_ROLLOUTS: size of the run, default 1000000, the size of the targets; figures name what it was. BENCH_MESSAGES: of the last.
import { randomUUID } from 'node:crypto';
import { databaseUrl } from './support/postgres.mjs';
import { apiKey, startPalestra } from './support/processes.mjs';

const ROLLOUTS = Number(process.env.BENCH_ROLLOUTS ?? 1_000_000);
const STEPS = 500;
const GROUP = 8;
const ASKS = 60;
/** Answers before the first that counts. */
const WARMING = 5;

/**
 * Narrow rows, heads and labels as deriving would have written them, by INSERT..SELECT: a million uploads would take minutes. Everything is
 * a function of the row's number. `reward` by group difficulty; rollups are made by the service itself.
 */
async function fill(client, orgId) {
  const perStep = Math.floor(ROLLOUTS / STEPS);
  const { rows } = await client.query(
    `INSERT INTO runs (org_id, name, name_hash) VALUES ($1, 'large', sha256('large'::bytea)) RETURNING seq`,
    [orgId],
  );
  const run = rows[0].seq;
  const { rows: environments } = await client.query(
    `INSERT INTO rollout_environments (org_id, name_hash, environment) SELECT $1, sha256(n::text::bytea), 'acme/env' || n FROM generate_series(1, 3) n RETURNING id`,
    [orgId],
  );
  const { rows: before } = await client.query('SELECT COALESCE(max(seq), 0)::bigint AS seq FROM rollout_heads');
  const first = Number(before[0].seq) + 1;
  await client.query(
    `CREATE TEMP TABLE made AS SELECT $2::bigint + n AS seq, gen_random_uuid() AS id, (n / ${perStep})::int AS step, n / ${GROUP} AS grp,
      n % ${GROUP} AS sample, ($1::int[])[1 + (n / ${GROUP}) % 3] AS env, CASE WHEN hashint8(n) & 63 = 0 THEN 1 END::smallint AS failure,
      CASE WHEN hashint8(n) & 63 = 0 OR hashint8(n + 7) & 31 = 0 THEN NULL ELSE ((abs(hashint8(n / ${GROUP})) % 5 + abs(hashint8(n)) % 5) / 8.0) END::float8 AS reward,
      now() - (${ROLLOUTS} - n) * interval '10 ms' AS at
    FROM generate_series(0, ${ROLLOUTS} - 1) n`,
    [environments.map(({ id }) => id), first],
  );
  await client.query(
    `INSERT INTO rollout_heads (seq, org_id, id, day, run_seq, messages, calls, max_index, bytes, finished, dirty, unsearched, unverified, unsealed, received_at, last_at)
    OVERRIDING SYSTEM VALUE SELECT seq, $1, id, at::date, $2, 20, 8, 19, 8000, true, false, false, false, false, at, at FROM made`,
    [orgId, run],
  );
  await client.query(`SELECT setval(pg_get_serial_sequence('rollout_heads', 'seq'), (SELECT max(seq) FROM rollout_heads))`);
  await client.query(
    `INSERT INTO rollout_meta (rollout_seq, rollout_name, source, model, rules) SELECT seq, 'r' || seq, 'generic', 'model', '{}' FROM made`,
  );
  await client.query(
    `INSERT INTO rollouts (seq, id, group_key, reward, reward_positive, max_reward, last_reward, received_at, last_at, bytes, run_seq, env_id, task_index, step, sample_idx,
      turns, messages, calls, call_errors, tokens_out, gaps, flags, provenance, revision, reward_steps, group_size, phase, stop, failure, normaliser, finished, split)
    SELECT seq, id, grp, reward, reward, reward, reward, at, at, 8000, $1, env, grp % 1000, step, sample, 4 + seq % 9, 20, 8, 0, 900, 0, 0, 174759, 1, 1, ${GROUP}, 0, 0, failure, 1, true, 'train'
    FROM made`,
    [run],
  );
  await client.query(
    `INSERT INTO rollout_tools (rollout_seq, run_seq, tool, calls, errors, result_bytes) SELECT seq, $1, tool, 4, 0, 2000 FROM made, unnest(ARRAY['look', 'answer']) tool`,
    [run],
  );
  // The words of one short message each: enough for search to have something to leave out.
  await client.query(
    `INSERT INTO rollout_search (rollout_seq, index, words) SELECT seq, 0, to_tsvector('simple', 'rollout number ' || seq || CASE WHEN seq % 1000 = 0 THEN ' needle' ELSE '' END)
    || array_to_tsvector(ARRAY[$1::text]) FROM made`,
    [(await runWordOf())(run)],
  );
  await client.query(`INSERT INTO dirty_steps SELECT DISTINCT $1::int, 0::smallint, step FROM made`, [run]);
  await client.query('ANALYZE');
  return run;
}

async function runWordOf() {
  const { runWord } = await import('../apps/api/dist/rollouts/derive/search-index.sql.js');
  return runWord;
}

const p95 = (times) => times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.95) - 1];

/** p95 of the milliseconds that `ASKS` answers took, after a few that do not count. */
async function timed(ask) {
  const times = [];
  for (let at = 0; at < ASKS + WARMING; at += 1) {
    const started = performance.now();
    await ask(at);
    if (at >= WARMING) times.push(performance.now() - started);
  }
  return p95(times);
}

/** Cursors as clients would have got them on their way to pages anywhere in the run. */
async function pagesAnywhere(client, run) {
  const { rows } = await client.query(
    `SELECT seq, COALESCE(reward, '-Infinity')::text AS value FROM rollouts WHERE run_seq = $1 AND hashint8(seq) % 97 = 0 ORDER BY random() LIMIT $2`,
    [run, ASKS + WARMING],
  );
  return rows.map(({ value, seq }) => Buffer.from(JSON.stringify(['reward', 'desc', value, seq])).toString('base64url'));
}

/** Messages per second of batches of 100 events of 1 kB, while the table grows tenfold and more. */
async function inserts(post, until) {
  const rates = [];
  let stored = 0;
  for (let mark = 10_000; mark <= until; mark *= 10) {
    const started = performance.now();
    const from = stored;
    const work = async () => {
      while (stored < mark) {
        stored += 100;
        const rolloutEventId = randomUUID();
        await post(
          Array.from({ length: 100 }, (_, index) => ({
            eventType: 'message',
            eventId: randomUUID(),
            rolloutEventId,
            timestamp: Date.now(),
            index,
            type: 'assistant_message',
            content: 'x'.repeat(800),
            isFinished: false,
            metadata: {},
          })),
        );
      }
    };
    await Promise.all(Array.from({ length: 8 }, work));
    rates.push({ mark, rate: (stored - from) / ((performance.now() - started) / 1000) });
  }
  return rates;
}

export async function benchStore() {
  const { default: pg } = await import('pg');
  const palestra = await startPalestra();
  const client = new pg.Client({ connectionString: databaseUrl(palestra.dataDir) });
  const ask = async (method, path, body) => {
    const headers = { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const answer = await fetch(palestra.url + path, init);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const get = (path) => ask('GET', path);
  try {
    await client.connect();
    const { rows } = await client.query('SELECT id FROM organisations ORDER BY created_at LIMIT 1');
    const run = await fill(client, rows[0].id);
    const started = performance.now();
    for (;;) {
      const { rows: left } = await client.query('SELECT count(*)::int AS left FROM dirty_steps');
      if (left[0].left === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const perStep = (performance.now() - started) / STEPS;
    const cursors = await pagesAnywhere(client, run);
    const { rows: groups } = await client.query('SELECT group_key FROM rollout_groups WHERE run_seq = $1 ORDER BY random() LIMIT 100', [
      run,
    ]);
    const figures = [
      ['overview', 100, await timed(() => get('/v1/runs/large'))],
      [
        'page of 100 at a random depth',
        20,
        await timed((at) => get(`/v1/runs/large/rollouts?limit=100&sort=reward&order=desc&cursor=${cursors[at]}`)),
      ],
      ['group', 50, await timed((at) => get(`/v1/runs/large/groups/${groups[at].group_key}`))],
      ['search, first page', 1_000, await timed(() => get('/v1/runs/large/search?q=needle'))],
      ['series of 500 steps', 100, await timed(() => get('/v1/runs/large/series?m=reward_mean'))],
    ];
    const rates = await inserts((events) => ask('POST', '/v1/rollouts', { events }), Number(process.env.BENCH_MESSAGES ?? 100_000));
    const size = `${ROLLOUTS} rollouts`;
    return [
      ...figures.map(([name, limit, ms]) => ({
        name: `${size}: ${name}, p95`,
        ours: ms,
        unit: 'ms',
        most: { value: ms, limit, unit: 'ms' },
      })),
      {
        name: `${size}: a dirty step of ${ROLLOUTS / STEPS} made again`,
        ours: perStep,
        unit: 'ms',
        most: { value: perStep, limit: 5, unit: 'ms' },
      },
      ...rates.map(({ mark, rate }) => ({
        name: `events of 1 kB per second up to ${mark} messages`,
        ours: rate,
        theirs: rates[0].rate,
        unit: '/s',
        ratio: rate / rates[0].rate,
        target: null,
      })),
    ];
  } finally {
    await client.end();
    await palestra.stop();
  }
}
