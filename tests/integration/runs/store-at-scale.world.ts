import type pg from 'pg';
import { NORMALISER_VERSION } from '../../../libs/rollouts/src/index.ts';

/** One huge run, sixteen of some thousands and two thousand small ones, in five organisations, as uploading and deriving write them. */
const MIDDLE = 16;
const SMALL = 2_000;
const ORGANISATIONS = 5;
const TASKS = 5_000;
/** Rollouts of a step, and samples of a group. */
const PER_STEP = 1_000;
export const GROUP = 8;

/** Words of messages, by the number of a rollout: in each, in one of 20 000, in none. */
export const TEXTS = { common: 'everywhere', rare: 'needle', absent: 'nowhere' } as const;
const RARE = 20_000;

export interface Filled {
  /** Names of runs of the organisation. */
  huge: string;
  small: string;
  /** The small run and the huge one, by `seq`. */
  seqs: { small: number; huge: number };
}

/** Runs `work` on a connection without the time limit of the service's statements, which a statement on a million rows exceeds. */
export async function withoutLimit<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('SET statement_timeout = 0');
    return await work(client);
  } finally {
    client.release(true);
  }
}

/** Fills the database with `rollouts` rollouts of two messages each; 60 % of them are in the huge run of `orgId`. */
export const fillStore = (pool: pg.Pool, orgId: string, rollouts: number): Promise<Filled> =>
  withoutLimit(pool, (client) => fill(client, orgId, rollouts));

async function fill(client: pg.PoolClient, orgId: string, rollouts: number): Promise<Filled> {
  const run = (text: string, values: unknown[] = []) => client.query(text, values);
  await run(`INSERT INTO organisations (name) SELECT 'scale-' || n FROM generate_series(2, $1::int) n`, [ORGANISATIONS]);
  // Run 0 is the huge one. Of each seventeen others, one is ours.
  await run(
    `INSERT INTO runs (org_id, name, name_hash, updated_at)
     SELECT CASE WHEN n % 17 = 0 OR n = 1 THEN $1::uuid ELSE (ARRAY(SELECT id FROM organisations WHERE name LIKE 'scale-%' ORDER BY name))[1 + n % ($2::int - 1)] END,
       'run ' || n, sha256(convert_to('run ' || n, 'UTF8')), now() - n * interval '1 s' FROM generate_series(0, $3::int) n`,
    [orgId, ORGANISATIONS, MIDDLE + SMALL],
  );
  await run(
    `INSERT INTO rollout_environments (org_id, name_hash, environment) SELECT id, sha256('e'), 'acme/math' FROM organisations ORDER BY name`,
  );
  await run(
    `INSERT INTO rollout_tasks (org_id, key_hash, key, env_id, task_index, split)
     SELECT e.org_id, sha256(n::text::bytea), 'task ' || n, e.id, n, 'train' FROM rollout_environments e, generate_series(0, $1::int - 1) n`,
    [TASKS],
  );
  // Rollouts of all runs arrive at the same time: those of one are between those of the others.
  await run(
    `CREATE TABLE made AS SELECT n, gen_random_uuid() AS id, u.seq AS run_seq, u.org_id, e.id AS env_id, CASE WHEN u.name = 'run 0' THEN n / $2::int ELSE n / $2::int % 3 END AS step, (n / ${GROUP}) % ${TASKS} AS task,
       n / ${GROUP} * 5000 + u.seq AS group_key, CASE WHEN hashint8(n) % 33 <> 0 THEN abs(hashint8(n)::bigint) % 201 / 200.0 END AS reward, (hashint8(n + 1) & 15 = 0)::int AS errors
     FROM generate_series(1, $1::int) n
     JOIN runs u ON u.name = 'run ' || CASE WHEN n % 10 < 6 THEN 0 WHEN n % 10 < 8 THEN 1 + n / 10 % ${MIDDLE} ELSE ${MIDDLE} + 1 + abs(hashint8(n)::bigint) % ${SMALL} END
     JOIN rollout_environments e ON e.org_id = u.org_id`,
    [rollouts, PER_STEP],
  );
  await run(
    `INSERT INTO rollout_heads (seq, org_id, id, day, run_seq, messages, calls, max_index, bytes, finished, dirty, unsearched, unverified, unsealed, verdict)
     OVERRIDING SYSTEM VALUE SELECT n, org_id, id, current_date, run_seq, 2, 1, 1, 100, true, false, false, false, false, 0 FROM made ORDER BY n`,
  );
  await run(`SELECT setval(pg_get_serial_sequence('rollout_heads', 'seq'), $1)`, [rollouts]);
  await run(
    `INSERT INTO rollout_starts (rollout_seq, start) SELECT n, jsonb_build_object('timestamp', 1700000000000 + n) FROM made ORDER BY n`,
  );
  await run(
    `INSERT INTO rollout_meta (rollout_seq, rollout_name, source, model) SELECT n, 'math-' || n, 'generic', 'model' || n % 2 FROM made ORDER BY n`,
  );
  await run(
    `INSERT INTO rollouts (seq, id, group_key, reward, reward_positive, max_reward, last_reward, received_at, last_at, bytes, run_seq, env_id, task_id, task_index, step, sample_idx,
       turns, messages, calls, call_errors, gaps, flags, provenance, revision, reward_steps, group_size, phase, stop, normaliser, finished, split)
     SELECT n, m.id, group_key, reward, reward, reward, reward, now(), now(), 100, run_seq, m.env_id, t.id, task, step, n % ${GROUP}, n % 9, 2, 1,
       errors, 0, 0, 174759, 1, 1, ${GROUP}, 0, n % 2, ${NORMALISER_VERSION}, true, 'train'
     FROM made m JOIN rollout_tasks t ON t.org_id = m.org_id AND t.task_index = m.task ORDER BY n`,
  );
  await run(
    `INSERT INTO rollout_tools (rollout_seq, run_seq, calls, errors, result_bytes, tool) SELECT n, run_seq, 1, errors, 10, CASE WHEN n % ${RARE} = 0 THEN 'rare' ELSE 'bash' END FROM made ORDER BY n`,
  );
  await run(
    `INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, sent_at, name, content)
     SELECT current_date, n, gen_random_uuid(), i, 50, i = 1, (ARRAY['assistant_message', 'tool_call'])[i + 1], 1700000000000 + i, CASE WHEN i = 1 THEN 'bash' END, ${TEXT('n')}
     FROM made, generate_series(0, 1) i ORDER BY n`,
  );
  await fillSearch(client);
  await run(
    `INSERT INTO annotations (org_id, rollout_seq, run_seq, tag, author, created_at)
     SELECT org_id, n, run_seq, CASE WHEN n % ${RARE} = 0 THEN 'rare' ELSE 'seen' END, 'me', now() - n * interval '1 s' FROM made WHERE n % 50 = 0`,
  );
  await run('INSERT INTO dirty_steps (run_seq, phase, step) SELECT DISTINCT run_seq, 0, step FROM made');
  const { rows } = await run(
    `SELECT (SELECT seq FROM runs WHERE name = 'run 0') AS huge, (SELECT run_seq FROM made m JOIN runs u ON u.seq = m.run_seq
       WHERE u.org_id = $1 AND u.name <> 'run 0' GROUP BY 1 ORDER BY count(*) LIMIT 1) AS small`,
    [orgId],
  );
  const { rows: names } = await run('SELECT name FROM runs WHERE seq = $1', [rows[0].small]);
  await run('DROP TABLE made');
  await run('VACUUM ANALYZE');
  return { huge: 'run 0', small: names[0].name, seqs: rows[0] };
}

/** Text of a message, SQL: a word that no other message has, a word of a thousand messages, and the words above. */
const TEXT = (n: string) =>
  `concat_ws(' ', '${TEXTS.common}', 'word' || ${n}, 'some' || ${n} % 1000, CASE WHEN ${n} % ${RARE} = 0 THEN '${TEXTS.rare}' END)`;

async function fillSearch(client: pg.PoolClient): Promise<void> {
  await client.query(
    `INSERT INTO rollout_search (rollout_seq, block, index, words)
     SELECT n, run_seq::bigint << 32 | (row_number() OVER (PARTITION BY run_seq ORDER BY n, i) - 1) / 256, i,
       array_to_tsvector(ARRAY[E'\\x01t' || (ARRAY['assistant_message', 'tool_call'])[i + 1], E'\\x01r' || run_seq]) || to_tsvector('simple', ${TEXT('n')})
     FROM made, generate_series(0, 1) i ORDER BY n, i`,
  );
  await client.query(
    `INSERT INTO rollout_search_blocks (block, words)
     SELECT s.block, array_agg(DISTINCT one.word) FROM rollout_search s, unnest(tsvector_to_array(s.words)) AS one(word) GROUP BY s.block ORDER BY s.block`,
  );
  await client.query(
    'INSERT INTO rollout_search_runs (run_seq, units) SELECT block >> 32, (max(block & 4294967295) + 1) * 256 FROM rollout_search GROUP BY 1',
  );
}
