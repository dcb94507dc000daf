// Exports of stored rollouts on a separate service: rows and whole transcripts as Parquet (zstd) into the object store, from the request
// to the finished export, and the peak memory of the service.
import pg from 'pg';
import { databaseUrl } from './support/postgres.mjs';
import { apiKey, startPalestra } from './support/processes.mjs';
import { usageOf } from './support/usage.mjs';

const ROLLOUTS = Number(process.env.PALESTRA_BENCH_EXPORTED ?? 100_000);
const MESSAGES_EACH = 6;
const WITH_MESSAGES = Math.round(ROLLOUTS / 5);
const ASKED_ROWS_PER_SECOND = 10_000;
const ASKED_MB = 500;
const GROUP = 8;

const RUN = `INSERT INTO runs (org_id, name, name_hash) SELECT id, 'exported', sha256('exported') FROM organisations ORDER BY created_at LIMIT 1 RETURNING seq, org_id`;
const ENVIRONMENT = `INSERT INTO rollout_environments (org_id, name_hash, environment) VALUES ($1, sha256('e'), 'palestra/echo') RETURNING id`;
const TASKS = `INSERT INTO rollout_tasks (org_id, key_hash, key, env_id, task_index, split)
  SELECT $1, sha256(n::text::bytea), 'task ' || n, $2, n, 'train' FROM generate_series(1, 1000) n`;
const HEADS = `INSERT INTO rollout_heads (org_id, id, day, run_seq, messages, calls, max_index, bytes, finished, dirty, unsearched, unverified)
  SELECT $1, gen_random_uuid(), current_date, $2, ${MESSAGES_EACH}, 2, ${MESSAGES_EACH - 1}, 2400, true, false, false, false FROM generate_series(1, $3::int)`;
const STARTS = `INSERT INTO rollout_starts (rollout_seq, start, rollout_info)
  SELECT seq, jsonb_build_object('timestamp', 1700000000000 + seq, 'metadata', jsonb_build_object('total_reward', 1.0, 'num_turns', 3, 'stop_reason', 'finished'),
    'task_spec', jsonb_build_object('seed', seq)), jsonb_build_object('task_index', seq % 1000)
  FROM rollout_heads WHERE run_seq = $1`;
const META = `INSERT INTO rollout_meta (rollout_seq, rollout_name, source, model, stop_raw)
  SELECT seq, 'palestra-echo-train-' || seq, 'skyrl', 'tiny', 'finished' FROM rollout_heads WHERE run_seq = $1`;
const NARROW = `INSERT INTO rollouts (seq, id, group_key, reward, reward_positive, max_reward, last_reward, received_at, last_at, bytes, run_seq, env_id, task_id,
    task_index, step, sample_idx, turns, messages, calls, call_errors, tokens_out, tokens_tool, gaps, flags, provenance, revision, reward_steps, phase,
    stop, normaliser, finished, split)
  SELECT seq, id, seq / ${GROUP}, r, r, r, r, received_at, last_at, bytes, run_seq, $2, 1 + seq % 1000, seq % 1000, seq / 512, seq % ${GROUP}, 3, messages, calls, 0, 300, 100,
    0, 0, 174762, 1, 1, 0, 0, 1, true, 'train'
  FROM rollout_heads, LATERAL (SELECT (hashint8(seq) & 3)::float8 / 3 AS r) x WHERE run_seq = $1`;
const MESSAGES = `INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, sent_at, reward, name, call_id, content)
  SELECT h.day, h.seq, gen_random_uuid(), n, 400, n = ${MESSAGES_EACH - 1}, (ARRAY['system_message', 'user_message', 'assistant_message', 'tool_call', 'tool_result', 'tool_result'])[n + 1],
    1700000000000 + n, CASE WHEN n > 3 THEN 0.5 END, CASE WHEN n = 3 THEN 'echo' END, CASE WHEN n >= 3 THEN 'c' || n END,
    repeat(md5((h.seq * 10 + n)::text), 12)
  FROM (SELECT * FROM rollout_heads WHERE run_seq = $1 ORDER BY seq LIMIT $2) h, generate_series(0, ${MESSAGES_EACH - 1}) n`;

async function store(palestra) {
  const client = new pg.Client({ connectionString: databaseUrl(palestra.dataDir) });
  await client.connect();
  try {
    const { seq, org_id: org } = (await client.query(RUN)).rows[0];
    const environment = (await client.query(ENVIRONMENT, [org])).rows[0].id;
    await client.query(TASKS, [org, environment]);
    await client.query(HEADS, [org, seq, ROLLOUTS]);
    await client.query(STARTS, [seq]);
    await client.query(META, [seq]);
    await client.query(NARROW, [seq, environment]);
    await client.query(MESSAGES, [seq, WITH_MESSAGES]);
    await client.query('VACUUM (ANALYZE) rollout_heads, rollout_starts, rollout_meta, rollouts, rollout_messages');
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
  }
}

async function exportOf(palestra, request, highest) {
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const ask = async (method, path, body) => {
    const answer = await fetch(palestra.url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const started = performance.now();
  const { id } = await ask('POST', '/v1/exports', request);
  for (;;) {
    const view = await ask('GET', `/v1/exports/${id}`);
    highest.bytes = Math.max(highest.bytes, usageOf(palestra.pid).service?.rssBytes ?? 0);
    if (view.state === 'failed') throw new Error(`export ${id}: ${view.error}`);
    if (view.state === 'complete') return { rows: view.written, bytes: view.bytes, seconds: (performance.now() - started) / 1000 };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export async function benchRolloutExport() {
  // Disables sealing and the lake, which would process these rollouts.
  process.env.PALESTRA_SEAL_FINISHED_S = '86400';
  const palestra = await startPalestra();
  const highest = { bytes: 0 };
  try {
    await store(palestra);
    const run = { run: 'exported' };
    await exportOf(palestra, { ...run, format: 'rollouts-parquet', query: 'step:0..5' }, { bytes: 0 });
    const narrow = await exportOf(palestra, { ...run, format: 'rollouts-parquet' }, highest);
    const whole = await exportOf(palestra, { ...run, format: 'parquet', query: `step:0..${Math.floor(WITH_MESSAGES / 512) - 1}` }, highest);
    const rate = narrow.rows / narrow.seconds;
    const megabytes = highest.bytes / 1e6;
    return [
      {
        name: `narrow rows of ${narrow.rows} rollouts exported per second`,
        ours: rate,
        theirs: ASKED_ROWS_PER_SECOND,
        unit: '/s',
        ratio: rate / ASKED_ROWS_PER_SECOND,
        target: 1,
      },
      { name: `rollouts with ${MESSAGES_EACH} messages exported per second`, ours: whole.rows / whole.seconds, unit: '/s', target: null },
      { name: 'memory of the service meanwhile', ours: megabytes, unit: 'MB', most: { value: megabytes, limit: ASKED_MB, unit: 'MB' } },
    ];
  } finally {
    delete process.env.PALESTRA_SEAL_FINISHED_S;
    await palestra.stop();
  }
}
