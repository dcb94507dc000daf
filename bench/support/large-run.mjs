// Fixture F1: one large seeded run with 500 steps, 3 environments, groups of 8, 2 % errors and missing rewards.
import path from 'node:path';
import { root } from './processes.mjs';

const GROUP = 8;
/** Messages of each rollout that has messages. */
const MESSAGES_EACH = 20;
const WORDS_EACH = 80;
/** Share of the rollouts with messages, because texts of all rollouts would be twenty million rows. */
const SPOKEN = 5_000;
const WORDS =
  `the a of to in is and model reads question calls search looks came back before writes answer environment scores against knows file line
  error test number sum value returns path open close list first second step reward tool result expected found missing retry because
  therefore check compute total count price table column row user system image link page number request response token`.split(/\s+/);

/**
 * Writes rows, heads and labels as deriving does, by INSERT..SELECT, because a million uploads would take minutes. All values are a
 * function of the row number; `reward` depends on the difficulty of the group. The service indexes messages and computes figures itself.
 */
export async function fillLargeRun(client, orgId, { rollouts, steps }) {
  const run = await insertRun(client, orgId);
  await makeRows(client, orgId, { rollouts, perStep: Math.floor(rollouts / steps) });
  const spoken = Math.min(SPOKEN, rollouts);
  const every = Math.floor(rollouts / spoken);
  // Messages first, because the heads announce them to the service.
  const inserts = [MESSAGES(every), META, NARROW(run), TOOLS(run), HEADS(orgId, run, every)];
  for (const text of inserts) await client.query(text, text.includes('$1') ? [WORDS] : []);
  await client.query(`SELECT setval(pg_get_serial_sequence('rollout_heads', 'seq'), (SELECT max(seq) FROM rollout_heads))`);
  const { runWord } = await import(path.join(root, 'apps/api/dist/store/derive/search/search-index.sql.js'));
  await client.query(OTHER_WORDS(every), [runWord(run), run]);
  await client.query(OTHER_BLOCKS, [run]);
  await client.query('ANALYZE');
  await markSteps(client, run);
  return { run, messages: spoken * MESSAGES_EACH };
}

/** Marks every step of the run for recomputation. Returns their number. */
export async function markSteps(client, run) {
  const { rowCount } = await client.query(
    'INSERT INTO dirty_steps SELECT DISTINCT run_seq, phase, step FROM rollouts WHERE run_seq = $1 ON CONFLICT DO NOTHING',
    [run],
  );
  return rowCount;
}

async function insertRun(client, orgId) {
  const { rows } = await client.query(
    `INSERT INTO runs (org_id, name, name_hash) VALUES ($1, 'large', sha256('large'::bytea)) RETURNING seq`,
    [orgId],
  );
  return rows[0].seq;
}

async function makeRows(client, orgId, { rollouts, perStep }) {
  const { rows: environments } = await client.query(
    `INSERT INTO rollout_environments (org_id, name_hash, environment) SELECT $1, sha256(n::text::bytea), 'acme/env' || n FROM generate_series(1, 3) n RETURNING id`,
    [orgId],
  );
  const { rows: before } = await client.query('SELECT COALESCE(max(seq), 0)::bigint AS seq FROM rollout_heads');
  await client.query(
    `CREATE TEMP TABLE made AS SELECT n, $2::bigint + n AS seq, gen_random_uuid() AS id, (n / ${perStep})::int AS step, n / ${GROUP} AS grp,
      n % ${GROUP} AS sample, ($1::int[])[1 + (n / ${GROUP}) % 3] AS env, CASE WHEN hashint8(n) & 63 = 0 THEN 1 END::smallint AS failure,
      CASE WHEN hashint8(n) & 63 = 0 OR hashint8(n + 7) & 31 = 0 THEN NULL ELSE ((abs(hashint8(n / ${GROUP})) % 5 + abs(hashint8(n)) % 5) / 8.0) END::float8 AS reward,
      now() - (${rollouts} - n) * interval '10 ms' AS at
    FROM generate_series(0, ${rollouts} - 1) n`,
    [environments.map(({ id }) => id), Number(before[0].seq) + 1],
  );
}

const HEADS = (orgId, run, every) => `
  INSERT INTO rollout_heads (seq, org_id, id, day, run_seq, messages, calls, max_index, bytes, finished, dirty, unsearched, unverified, unsealed, received_at, last_at)
  OVERRIDING SYSTEM VALUE SELECT seq, '${orgId}', id, at::date, ${run}, 20, 8, 19, 8000, true, false, n % ${every} = 0, false, false, at, at FROM made`;
const META = `
  INSERT INTO rollout_meta (rollout_seq, rollout_name, source, model) SELECT seq, 'r' || seq, 'generic', 'model' FROM made`;
const NARROW = (run) => `
  INSERT INTO rollouts (seq, id, group_key, reward, reward_positive, max_reward, last_reward, received_at, last_at, bytes, run_seq, env_id, task_index, step, sample_idx,
    turns, messages, calls, call_errors, tokens_out, gaps, flags, provenance, revision, reward_steps, group_size, phase, stop, failure, normaliser, finished, split)
  SELECT seq, id, grp, reward, reward, reward, reward, at, at, 8000, ${run}, env, grp % 1000, step, sample, 4 + seq % 9, 20, 8, 0, 900, 0, 0, 174759, 1, 1, ${GROUP}, 0, 0,
    failure, 1, true, 'train' FROM made`;
const TOOLS = (run) => `
  INSERT INTO rollout_tools (rollout_seq, run_seq, tool, calls, errors, result_bytes) SELECT seq, ${run}, tool, 4, 0, 2000 FROM made, unnest(ARRAY['look', 'answer']) tool`;
/** All messages of some rollouts; one message in a hundred contains a needle. */
const MESSAGES = (every) => `
  INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, sent_at, name, call_id, content)
  SELECT at::date, seq, gen_random_uuid(), i, length(content), i = ${MESSAGES_EACH - 1}, (ARRAY['assistant_message', 'tool_call', 'tool_result'])[1 + i % 3],
    1700000000000 + i, CASE WHEN i % 3 > 0 THEN 'look' END, CASE WHEN i % 3 > 0 THEN 'c' || i / 3 END, content
  FROM (SELECT * FROM made WHERE n % ${every} = 0) m, generate_series(0, ${MESSAGES_EACH - 1}) i,
    LATERAL (SELECT string_agg(CASE WHEN h % 16 = 0 THEN h::text ELSE ($1::text[])[1 + h % ${WORDS.length}] END, ' ' ORDER BY k)
      || CASE WHEN (n / ${every} + i) % 100 = 0 THEN ' needle' ELSE '' END AS content
      FROM (SELECT k, abs(hashint8(seq * 10007 + i * 101 + k)::bigint) AS h FROM generate_series(1, ${WORDS_EACH}) k) w) t`;
/** One short indexed message for each other rollout, so that a search has something to exclude. */
const OTHER_WORDS = (every) => `
  INSERT INTO rollout_search (rollout_seq, block, index, words)
  SELECT seq, $2::bigint << 32 | 1000000 + n / 256, 0, to_tsvector('simple', 'rollout number ' || seq) || array_to_tsvector(ARRAY[$1::text])
  FROM made WHERE n % ${every} <> 0`;
const OTHER_BLOCKS = `
  INSERT INTO rollout_search_blocks (block, words)
  SELECT s.block, array_agg(DISTINCT one.word) FROM rollout_search s, unnest(tsvector_to_array(s.words)) AS one(word) WHERE s.block >> 32 = $1 GROUP BY s.block`;
