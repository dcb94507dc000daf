import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { settled } from '../../support/derived-rows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { NORMALISER_VERSION } from '../../../libs/rollouts/src/index.ts';
import { seeded, upload } from './run-reads.world.ts';

/** Plans of the statements of the read routes, on tables of 40 000 rows in eight runs. */
const ROWS = 40_000;
const RUNS = 8;
const WATCHED = ['rollouts', 'rollout_messages', 'rollout_search', 'rollout_groups', 'step_rollups', 'tool_rollups', 'annotations'];

let server: TestServer;
let group: { key: string; task: { id: string } };
let rollout: string;
const get = async (url: string) => {
  const answer = await server.request('GET', url);
  if (answer.status !== 200) throw new Error(`${url}: ${JSON.stringify(answer.body)}`);
  return answer.body;
};

beforeAll(async () => {
  server = await startServer();
  for (let run = 0; run < RUNS; run += 1) await upload(server, `run ${run}`, seeded(`run ${run}`, { steps: 1, tasks: 1, n: 1 }));
  await get('/v1/runs');
  const { pool } = server.database;
  await pool.query(
    `WITH sample AS (SELECT r.org_id, r.seq AS run_seq, row_number() OVER (ORDER BY r.seq) - 1 AS place FROM runs r),
      head AS (INSERT INTO rollout_heads (org_id, id, day, run_seq, dirty, unsearched, unverified)
        SELECT s.org_id, gen_random_uuid(), current_date, s.run_seq, false, false, false FROM generate_series(1, $1) n JOIN sample s ON s.place = n % $2 RETURNING seq, id, run_seq)
     INSERT INTO rollouts (seq, id, group_key, reward, reward_positive, last_reward, received_at, last_at, bytes, run_seq, env_id, task_id, task_index, step, sample_idx, turns, messages, calls,
       call_errors, gaps, flags, provenance, revision, reward_steps, group_size, phase, stop, normaliser, finished)
     SELECT h.seq, h.id, h.seq / 32, (h.seq % 201) / 200.0, 0, 0, now(), now(), 100, h.run_seq, (SELECT min(id) FROM rollout_environments), (SELECT min(id) FROM rollout_tasks), h.seq % 50,
       CASE WHEN h.run_seq < $3 THEN (h.seq / 320)::int END, h.seq % 4, h.seq % 9, 1, 1, (h.seq % 7 = 0)::int, 0, CASE WHEN h.seq % 7 = 0 THEN 1024 ELSE 0 END, 3, 1, 1, 4, 0, h.seq % 2, $4, true FROM head h`,
    [ROWS, RUNS, (await pool.query('SELECT max(seq) AS last FROM runs')).rows[0].last, NORMALISER_VERSION],
  );
  await pool.query(
    `INSERT INTO rollout_messages (day, rollout_seq, event_id, index, bytes, is_finished, type, sent_at, content)
     SELECT day, seq, gen_random_uuid(), 0, 10, false, 'assistant_message', 1, 'word' || seq FROM rollout_heads WHERE messages = 0`,
  );
  await pool.query(
    `INSERT INTO rollout_search (rollout_seq, block, index, words)
     SELECT h.seq, h.run_seq::bigint << 32 | row_number() OVER (PARTITION BY h.run_seq ORDER BY h.seq) / 256, 0,
       array_to_tsvector(ARRAY[E'\\x01tassistant_message', E'\\x01r' || h.run_seq, 'word' || h.seq, 'common'])
     FROM rollout_heads h WHERE h.messages = 0`,
  );
  await pool.query(
    `INSERT INTO rollout_search_blocks (block, words)
     SELECT s.block, array_agg(DISTINCT one.word) FROM rollout_search s, unnest(tsvector_to_array(s.words)) AS one(word) GROUP BY s.block`,
  );
  await pool.query(
    `INSERT INTO rollout_tools (rollout_seq, run_seq, calls, errors, result_bytes, tool) SELECT seq, run_seq, 1, call_errors, 1, 'bash' FROM rollouts WHERE messages = 1`,
  );
  await pool.query(
    `INSERT INTO dirty_steps (run_seq, phase, step) SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM rollouts ON CONFLICT DO NOTHING`,
  );
  await settled(pool);
  await pool.query(
    `INSERT INTO annotations (org_id, rollout_seq, run_seq, tag, author) SELECT u.org_id, r.seq, r.run_seq, 'x', 'me' FROM rollouts r JOIN runs u ON u.seq = r.run_seq`,
  );
  // Enough tools that reading those of all runs costs more than finding those of one.
  await pool.query(
    `INSERT INTO tool_rollups (run_seq, phase, step, env_id, tool, figures) SELECT run_seq, phase, step, env_id, tool || n, figures FROM tool_rollups, generate_series(1, 9) n`,
  );
  // VACUUM also empties the pending lists of GIN indexes, as autovacuum does.
  await pool.query('VACUUM ANALYZE');
  group = (await get('/v1/runs/run%203/groups?limit=1')).groups[0];
  rollout = (await get('/v1/runs/run%203/rollouts?limit=1&offset=2500')).rollouts[0].id;
}, 240_000);
afterAll(() => server.close());

interface Asked {
  text: string;
  values: unknown[];
}

/** The statements that one request sent to the pool. */
async function statementsOf(url: string): Promise<Asked[]> {
  const { pool } = server.serviceDatabase;
  const asked: Asked[] = [];
  const query = pool.query.bind(pool) as (...of: unknown[]) => unknown;
  pool.query = ((first: string | Asked, values?: unknown[]) => {
    const { text, values: given } =
      typeof first === 'string' ? { text: first, values: values ?? [] } : { text: first.text, values: first.values ?? values ?? [] };
    asked.push({ text, values: given });
    return query(first, values);
  }) as typeof pool.query;
  try {
    await get(url);
  } finally {
    pool.query = query as typeof pool.query;
  }
  return asked.filter(({ text }) => WATCHED.some((table) => text.includes(table)));
}

/** Tables that a plan reads sequentially. */
async function scannedBy({ text, values }: Asked): Promise<string[]> {
  const { rows } = await server.database.pool.query(`EXPLAIN (FORMAT JSON) ${text}`, values);
  const found: string[] = [];
  const visit = (node: any) => {
    if (node['Node Type'] === 'Seq Scan') found.push(node['Relation Name']);
    for (const child of node.Plans ?? []) visit(child);
  };
  visit(rows[0]['QUERY PLAN'][0].Plan);
  // PostgreSQL reads an empty partition rather than its index.
  const { rows: sizes } = await server.database.pool.query(
    'SELECT c FROM unnest($1::text[]) AS c WHERE pg_relation_size(c::regclass) > 0',
    [found],
  );
  return sizes.map(({ c }) => String(c)).filter((table) => WATCHED.some((watched) => table === watched || table.startsWith(`${watched}_`)));
}

const RUN = '/v1/runs/run%203';
/** A run with one known step and five thousand rollouts without a step. */
const UNKNOWN = '/v1/runs/run%207';
const routes = [
  `${RUN}/rollouts`,
  `${RUN}/rollouts?sort=reward&order=asc`,
  `${RUN}/rollouts?sort=step`,
  `${RUN}/rollouts?sort=task`,
  `${RUN}/rollouts?sort=turns`,
  `${RUN}/rollouts?sort=messages`,
  `${RUN}/rollouts?q=${encodeURIComponent('step:20..21 reward:0 has:error')}`,
  `${RUN}/rollouts?q=${encodeURIComponent('word123')}`,
  `${RUN}/series?m=reward_mean&x=time&by=env`,
  `${RUN}/series?m=reward&lens=trl`,
  `${RUN}/summary`,
  `${RUN}/summary?den=effective`,
  `${UNKNOWN}/series?x=window&lens=skyrl&m=reward/avg_raw_reward`,
  `${UNKNOWN}/heatmap?x=window&y=turns`,
  `${RUN}/heatmap?y=turns`,
  `${RUN}/facets`,
  `${RUN}/facets?q=has%3Aerror`,
  `${RUN}/groups`,
  `${RUN}/groups?sort=mean`,
  `${RUN}/groups?q=has%3Aerror`,
  `${RUN}/groups/{group}`,
  `${RUN}/tasks`,
  `${RUN}/tasks/{task}`,
  `${RUN}/tools`,
  `${RUN}/failures`,
  `${RUN}/config`,
  `${RUN}/search?q=common`,
  `${RUN}/search?q=word12345&within=step%3A20`,
  `${RUN}/search?q=word1&mode=regex&limit=1`,
  '/v1/rollouts/{rollout}/header',
  '/v1/rollouts/{rollout}/beside?sort=created_at',
  '/v1/rollouts/{rollout}/beside?sort=reward&order=desc',
  '/v1/rollouts/{rollout}/beside?sort=reward&order=asc',
  '/v1/rollouts/{rollout}/beside?sort=step',
  '/v1/rollouts/{rollout}/beside?sort=task&order=asc',
  '/v1/rollouts/{rollout}/beside?sort=turns',
  '/v1/rollouts/{rollout}/beside?sort=messages',
  `/v1/rollouts/{rollout}/beside?sort=reward&q=${encodeURIComponent('step:20..21 has:error')}`,
  '/v1/search?q=word77',
  '/v1/runs?limit=100',
  '/v1/annotations?run=run%203',
];

describe('no sequential scan for', () => {
  it.each(routes)('%s', async (route) => {
    const url = route.replace('{rollout}', rollout).replace('{group}', group.key).replace('{task}', group.task.id);
    const statements = await statementsOf(url);
    expect(statements.length).toBeGreaterThan(0);
    for (const statement of statements)
      expect({ scans: await scannedBy(statement), statement: statement.text }).toMatchObject({ scans: [] });
  });

  it('the check finds a statement without an index', async () => {
    expect(await scannedBy({ text: 'SELECT count(*) FROM rollouts WHERE bytes > $1', values: [5] })).toEqual(['rollouts']);
  });
});

describe('pages of rollouts while rollouts arrive', () => {
  it.each(['sort=created_at&order=desc', 'sort=created_at&order=asc', 'sort=step&order=desc', 'sort=reward&order=asc'])(
    'sorted by %s contain each rollout once',
    async (sort) => {
      const run = `busy ${sort}`;
      const stored = seeded(run, { steps: 5, tasks: 4, n: 4 });
      await upload(server, run, stored);
      const url = `/v1/runs/${encodeURIComponent(run)}/rollouts?${sort}&limit=9`;
      const seen: string[] = [];
      let cursor: string | null = '';
      for (let page = 0; cursor !== null; page += 1) {
        const body: any = await get(`${url}${cursor && `&cursor=${cursor}`}`);
        seen.push(...body.rollouts.map(({ id }: { id: string }) => id));
        cursor = body.next;
        // Others arrive between the pages, before and after the cursor.
        if (page < 6) await upload(server, run, seeded(`${run}/${page}`, { steps: 3, tasks: 1, n: 2 }));
      }
      expect(new Set(seen).size).toBe(seen.length);
      const all = new Set(seen);
      expect(stored.filter(({ id }) => !all.has(id))).toEqual([]);
    },
  );
});
