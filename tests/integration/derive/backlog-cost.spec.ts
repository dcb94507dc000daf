import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type NarrowRow, writeNarrowRows } from '../../../apps/api/src/store/derive/derive.sql.ts';
import { selectDueSearchLanes, selectLate, selectUnsearched } from '../../../apps/api/src/store/derive/search/search-index.sql.ts';
import { hasUnsearched } from '../../../apps/api/src/runs/search/search.sql.ts';
import { createDatabase } from '../../support/server.ts';

/** The statements of derivation cost what their batch costs, however many rollouts wait beside it. */

const BACKLOG = 20_000;
const BATCH = 400;
/** Pages of the backlog are some hundreds. */
const MOST_PAGES = 60;
const LANES = 4;
const org = randomUUID();
let database: Awaited<ReturnType<typeof createDatabase>>;
let client: pg.Client;
/** A run with a backlog, one of another lane with a few rollouts, and one without work. */
let large: number;
let small: number;
let settled: number;

beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url, options: '-c enable_seqscan=off -c jit=off' });
  await client.connect();
  await client.query(`INSERT INTO organisations (id, name) VALUES ($1, 'busy')`, [org]);
  const { rows } = await client.query(
    `INSERT INTO runs (org_id, name, name_hash) SELECT $1::uuid, 'run ' || n, sha256(convert_to('run ' || n, 'UTF8')) FROM generate_series(1, 3) n RETURNING seq`,
    [org],
  );
  [large, small, settled] = rows.map(({ seq }) => seq);
  const add = (run: number, count: number, unsearched: boolean) =>
    client.query(
      `INSERT INTO rollout_heads (org_id, id, day, run_seq, messages, bytes, unsearched) SELECT $1::uuid, gen_random_uuid(), current_date, $2::int, 3, 300, $4::boolean FROM generate_series(1, $3::int)`,
      [org, run, count, unsearched],
    );
  await add(large!, BACKLOG, true);
  await add(small!, 3, true);
  await add(settled!, 10, false);
  await client.query('VACUUM ANALYZE rollout_heads');
}, 120_000);
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** Answers of `work`, and of all its statements the pages that they read and the most rows that a node of a plan produced. */
async function costOf<T>(work: (pool: pg.Pool) => Promise<T>): Promise<{ pages: number; rows: number; answer: T }> {
  const cost = { pages: 0, rows: 0 };
  const count = (node: any): void => {
    cost.rows = Math.max(cost.rows, node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Join Filter'] ?? 0)));
    for (const child of node.Plans ?? []) count(child);
  };
  const query = async ({ text, values }: { text: string; values: unknown[] }) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values);
    const { Plan: plan } = rows[0]['QUERY PLAN'][0];
    cost.pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    count(plan);
    await client.query('ROLLBACK TO SAVEPOINT before');
    return client.query(text, values);
  };
  await client.query('BEGIN; SAVEPOINT before');
  try {
    const answer = await work({ query: (text: any, values: any) => query(typeof text === 'string' ? { text, values } : text) } as never);
    return { ...cost, answer };
  } finally {
    await client.query('ROLLBACK');
  }
}

test('a lane of search reads its own runs, and takes each of them in turn', async () => {
  const lane = (run: number, after = 0, until = settled) => ({ number: run % LANES, of: LANES, after, until });
  const next = (run: number, after?: number, until?: number) =>
    costOf((pool) => selectUnsearched(pool, 200, 1_000_000, lane(run, after, until), []));
  const few = await next(small);
  expect(few.answer.map(({ run_seq }) => run_seq)).toEqual([small, small, small]);
  expect(few.pages).toBeLessThan(MOST_PAGES);
  const many = await next(large);
  expect(new Set(many.answer.map(({ run_seq }) => run_seq))).toEqual(new Set([large]));
  expect(many.answer).toHaveLength(200);
  expect(many.pages).toBeLessThan(MOST_PAGES);
  expect((await next(large, large)).answer).toEqual([]);
  // A round ends at the newest run of its beginning.
  expect((await next(small, 0, large)).answer).toEqual([]);

  const lanes = await costOf((pool) => selectDueSearchLanes(pool, LANES, []));
  expect(new Set(lanes.answer)).toEqual(new Set([large % LANES, small % LANES]));
  expect(lanes.pages).toBeLessThan(MOST_PAGES);
  const without = few.answer.map(({ seq }) => seq);
  expect((await costOf((pool) => selectDueSearchLanes(pool, LANES, without))).answer).toEqual([large % LANES]);
});

test('a read knows whether its run waits without reading the backlog of another', async () => {
  for (const [run, waits] of [
    [small, true],
    [settled, false],
  ] as const) {
    const found = await costOf((pool) => hasUnsearched(pool, [run]));
    expect(found.answer).toBe(waits);
    expect(found.pages).toBeLessThan(MOST_PAGES);
  }
});

test('rollouts that were sealed too early are found without reading the backlog', async () => {
  expect(await costOf((pool) => selectLate(pool, 20, []))).toMatchObject({ answer: [] });
  const { rows } = await client.query(`SELECT seq::text FROM rollout_heads WHERE run_seq = $1 ORDER BY seq DESC LIMIT 1`, [large]);
  await client.query(`UPDATE rollout_heads SET sealed_at = now() WHERE seq = $1`, [rows[0].seq]);
  const late = await costOf((pool) => selectLate(pool, 20, []));
  expect(late.answer).toEqual([{ seq: rows[0].seq, run_seq: large }]);
  expect(late.pages).toBeLessThan(MOST_PAGES);
  await client.query(`UPDATE rollout_heads SET sealed_at = NULL WHERE seq = $1`, [rows[0].seq]);
});

test('narrow rows are written with work that grows as their number, not as its square', async () => {
  const { rows: heads } = await client.query(`SELECT seq::text, id, revision FROM rollout_heads WHERE run_seq = $1 ORDER BY seq LIMIT $2`, [
    large,
    BATCH,
  ]);
  const narrow = heads.map((head): Partial<NarrowRow> => ({
    ...head,
    run_seq: large,
    env_id: 1,
    ...ZEROES,
    finished: true,
    received_at: 0,
    last_at: 0,
    infer: false,
  }));
  const bits = { mask: 3, inferred: 1, telemetry: 0 };
  const { answer, rows } = await costOf((pool) => writeNarrowRows(pool, narrow as NarrowRow[], bits));
  expect(answer).toEqual({ written: BATCH, cleaned: BATCH });
  expect(rows).toBeLessThan(4 * BATCH);
});

const ZEROES = {
  phase: 0,
  reward_steps: 0,
  stop: 0,
  failure: 0,
  turns: 0,
  tool_turns: 0,
  messages: 3,
  calls: 0,
  call_errors: 0,
  bytes: 300,
  gaps: 0,
  flags: 0,
  provenance: 0,
  normaliser: 1,
  rules_id: 1,
  tools: [],
};
