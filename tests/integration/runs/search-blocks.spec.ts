import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { hitsSql } from '../../../apps/api/src/runs/search/search.sql.ts';
import { BLOCKS } from '../../../apps/api/src/store/derive/search/found-blocks.sql.ts';
import { createOrganisation } from '../../support/organisation.ts';
import { startServer, type TestServer } from '../../support/server.ts';

/** Search finds the same messages as a scan of all, after any change, and its plans do not depend on the words. */

interface Message {
  rollout: string;
  index: number;
  text: string;
}

let server: TestServer;
const headersOf = new Map<string, Record<string, string>>();
/** The stored messages, by organisation and run. */
const stored = new Map<string, Message[]>();

const start = (runName: string, id: string) => ({
  eventType: 'rollout',
  eventId: id,
  timestamp: 1,
  runName,
  environment: 'acme/words',
  split: 'train',
  metadata: {},
});
const message = ({ rollout, index, text }: Message) => ({
  eventType: 'message',
  eventId: randomUUID(),
  rolloutEventId: rollout,
  timestamp: 2 + index,
  index,
  type: 'assistant_message',
  content: text,
  isFinished: false,
  metadata: {},
});

async function post(org: string, events: object[]): Promise<void> {
  const answer = await server.request('POST', '/v1/rollouts', { body: { events }, headers: headersOf.get(org)! });
  expect(answer).toMatchObject({ status: 200 });
}

/** Rollouts of three messages; `textOf` returns their text. */
async function add(org: string, run: string, rollouts: number, textOf: (n: number) => string): Promise<void> {
  const messages = stored.get(`${org} ${run}`) ?? [];
  stored.set(`${org} ${run}`, messages);
  for (let at = 0; at < rollouts; at += 50) {
    const events: object[] = [];
    for (let one = at; one < Math.min(rollouts, at + 50); one += 1) {
      const rollout = randomUUID();
      events.push(start(run, rollout));
      for (let index = 0; index < 3; index += 1) {
        const said = { rollout, index, text: textOf(messages.length) };
        messages.push(said);
        events.push(message(said));
      }
    }
    await post(org, events);
  }
}

async function searchable(): Promise<void> {
  const waits = `SELECT (SELECT count(*) FROM rollout_heads WHERE unsearched) + (SELECT count(*) FROM rollout_search_marks) AS n`;
  await vi.waitFor(async () => expect((await server.database.pool.query(waits)).rows[0].n).toBe('0'), { timeout: 60_000, interval: 100 });
}

/** Every hit, page by page, as "rollout index". */
async function found(org: string, run: string | null, q: string): Promise<string[]> {
  const hits: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = new URLSearchParams({ q, limit: '100', ...(cursor ? { cursor } : {}) });
    const url = run === null ? `/v1/search?${query}` : `/v1/runs/${run}/search?${query}`;
    const { status, body }: any = await server.request('GET', url, { headers: headersOf.get(org)! });
    expect(status).toBe(200);
    hits.push(...body.hits.map((hit: any) => `${hit.rollout} ${hit.index}`));
    cursor = body.next;
  }
  return hits;
}

const scan = (org: string, run: string | null, words: string) =>
  [...stored]
    .filter(([key]) => (run === null ? key.startsWith(`${org} `) : key === `${org} ${run}`))
    .flatMap(([, messages]) => messages.filter(({ text }) => ` ${text} `.includes(` ${words} `)))
    .map(({ rollout, index }) => `${rollout} ${index}`)
    .toSorted();

async function expectAsScanned(): Promise<void> {
  for (const q of ['common', 'tenth', 'rare', 'late', 'absent', 'common tenth', 'tenth common', 'changed', 'theirs'])
    for (const [org, run] of [
      ['ours', 'one'],
      ['ours', 'two'],
      ['ours', null],
      ['theirs', 'one'],
    ] as const) {
      const hits = await found(org, run, q);
      expect({ q, org, run, hits: hits.toSorted() }).toEqual({ q, org, run, hits: scan(org, run, q) });
    }
}

beforeAll(async () => {
  server = await startServer();
  for (const org of ['ours', 'theirs']) {
    const { apiKey } = await createOrganisation(server.url, server.apiKey);
    headersOf.set(org, { 'x-api-key': apiKey });
  }
  const textOf = (n: number) =>
    `common ${n % 10 === 3 ? 'tenth ' : ''}${n % 400 === 7 ? 'rare ' : ''}${n > 700 ? 'late ' : ''}${n % 5 === 0 ? 'common tenth ' : ''}no${n}`;
  for (let part = 0; part < 3; part += 1) {
    await add('ours', 'one', 100, textOf);
    await add('ours', 'two', 30, textOf);
    await add('theirs', 'one', 60, (n) => `${textOf(n)} theirs`);
  }
  await searchable();
}, 120_000);
afterAll(() => server.close());

describe('search equals a scan of all messages', () => {
  it('for rare, common and absent words, in runs and organisations', expectAsScanned);

  it('after late messages of indexed rollouts', async () => {
    const messages = stored.get('ours one')!;
    const late = [2, 300, 800].map((at) => ({ rollout: messages[at]!.rollout, index: 7, text: `rare changed ${at}` }));
    await post('ours', late.map(message));
    messages.push(...late);
    await searchable();
    await expectAsScanned();
  });

  it('after rollouts are erased, whose words leave the blocks', async () => {
    const messages = stored.get('ours one')!;
    const gone = new Set([7, 50, 407, 899].map((at) => messages[at]!.rollout));
    for (const id of gone)
      expect(await server.request('DELETE', `/v1/rollouts/${id}`, { headers: headersOf.get('ours')! })).toMatchObject({ status: 200 });
    stored.set(
      'ours one',
      messages.filter(({ rollout }) => !gone.has(rollout)),
    );
    await searchable();
    await expectAsScanned();
    const { rows } = await server.database.pool.query(
      `SELECT (SELECT count(*)::int FROM rollout_search_blocks b WHERE NOT EXISTS (SELECT FROM rollout_search s WHERE s.block = b.block)) AS empty,
        (SELECT count(*)::int FROM rollout_search_blocks b, unnest(b.words) w WHERE NOT EXISTS (SELECT FROM rollout_search s WHERE s.block = b.block AND tsvector_to_array(s.words) @> ARRAY[w])) AS words`,
    );
    expect(rows[0]).toEqual({ empty: 0, words: 0 });
  });

  it('with blocks of at most 256 messages of one run, and one row per full block', async () => {
    const { rows } = await server.database.pool.query(
      `SELECT s.block >> 32 AS run, s.block & 4294967295 AS number, count(*)::int AS messages, count(DISTINCT h.run_seq)::int AS runs, min(h.run_seq) AS run_seq,
         (SELECT count(*)::int FROM rollout_search_blocks b WHERE b.block = s.block) AS rows
       FROM rollout_search s JOIN rollout_heads h ON h.seq = s.rollout_seq GROUP BY s.block ORDER BY s.block`,
    );
    for (const { run, run_seq, messages, runs } of rows) {
      expect({ run: Number(run), runs }).toEqual({ run: run_seq, runs: 1 });
      expect(messages).toBeLessThanOrEqual(256);
    }
    const newest = new Map(rows.map(({ run, number }) => [run, number]));
    for (const { run, number, rows: count } of rows) if (newest.get(run) !== number) expect(count).toBe(1);
    expect(rows.filter(({ number }) => Number(number) > 0).length).toBeGreaterThan(3);
  });
});

describe('plans of search', () => {
  const BLOCK_COUNT = 4_000;
  let run: number;

  beforeAll(async () => {
    const { pool } = server.database;
    run = (await pool.query('SELECT min(seq) AS seq FROM runs')).rows[0].seq;
    await pool.query(
      `INSERT INTO rollout_search (rollout_seq, block, index, words)
       SELECT 1000000000 + n, $1::bigint << 32 | 1000 + n / 16, 0, array_to_tsvector(ARRAY[E'\\x01tassistant_message', E'\\x01r' || $1::int, 'frequent', 'word' || n % 1000, 'block' || n / 16])
       FROM generate_series(0, $2::int * 16 - 1) n`,
      [run, BLOCK_COUNT],
    );
    await pool.query(
      `INSERT INTO rollout_search_blocks (block, words)
       SELECT s.block, array_agg(DISTINCT one.word) FROM rollout_search s, unnest(tsvector_to_array(s.words)) AS one(word) WHERE s.rollout_seq >= 1000000000 GROUP BY s.block`,
    );
    await pool.query('VACUUM ANALYZE rollout_search');
    await pool.query('VACUUM ANALYZE rollout_search_blocks');
  }, 60_000);
  afterAll(async () => {
    await server.database.pool.query('DELETE FROM rollout_search WHERE rollout_seq >= 1000000000');
    await server.database.pool.query('DELETE FROM rollout_search_blocks WHERE block & 4294967295 >= 1000');
  });

  async function scansOf(text: string, values: unknown[]): Promise<{ nodes: string[]; rows: number }> {
    const client = await server.database.pool.connect();
    try {
      await client.query('BEGIN');
      // As connections of the service.
      if (text === BLOCKS) await client.query('SET LOCAL enable_seqscan = off');
      const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
      const nodes = new Set<string>();
      const visit = (node: any) => {
        if (node['Index Name'] ?? /Seq Scan/.test(node['Node Type']))
          nodes.add(node['Index Name'] ?? `${node['Node Type']} ${node['Relation Name']}`);
        for (const child of node.Plans ?? []) visit(child);
      };
      visit(rows[0]['QUERY PLAN'][0].Plan);
      return { nodes: [...nodes], rows: rows[0]['QUERY PLAN'][0].Plan['Actual Rows'] };
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  it.each([
    ['frequent', BLOCK_COUNT],
    ['word7', 64],
    ['block77', 1],
    ['absent', 0],
    ['frequent block77', 1],
  ])('the index of blocks answers "%s"', async (word, blocks) => {
    const plan = await scansOf(BLOCKS, [[`\u0001r${run}`], word, '0', 10_000, null]);
    expect(plan).toEqual({ nodes: ['rollout_search_blocks_words_idx'], rows: blocks });
  });

  it.each(['frequent', 'word7', 'absent'])('messages of blocks that can contain "%s" are read block by block', async (word) => {
    const blocks = Array.from({ length: 64 }, (_none, n) => String((BigInt(run) << 32n) + 1000n + BigInt(n)));
    const plan = await scansOf(hitsSql(null), [`'\u0001r${run}'`, word, blocks, '0', '0', 0]);
    expect(plan.nodes).toEqual(['rollout_search_block_idx']);
  });
});
