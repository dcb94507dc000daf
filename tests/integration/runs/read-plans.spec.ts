import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { settled } from '../../support/derived-rows.ts';
import { full } from '../../support/full.ts';
import { createDatabase, startServer, type TestServer } from '../../support/server.ts';
import { routes } from '../platform/every-route.world.ts';
import { type Filled, fillStore, GROUP, TEXTS, withoutLimit } from './store-at-scale.world.ts';

/** Plans of the statements of every read route of the store, as PostgreSQL chose them while it answered. */
const ROLLOUTS = full ? 1_000_000 : 100_000;
/** Rows that one statement may read of one table: the largest limit of a statement (50 000 rollouts) and a little more. It does not grow with the store. */
const MOST_READ = 52_000;
/** A condition on other fields reads the rollouts of its run, here 60 %, and a comparison those of each of its runs. */
const RUN = ROLLOUTS * 0.61;
/** Counting for an action on all rollouts of a query stops here. */
const MOST_COUNTED = 101_000;
const mostOf = (url: string): number => {
  if (url.startsWith('/v1/compare')) return 2 * RUN;
  // Figures of all steps together, and the order of groups by a computed figure, read the groups of the run.
  if (/\/(summary|groups\?sort=)/.test(url)) return Math.max(MOST_READ, ROLLOUTS / GROUP + 1);
  // A page of 200, whatever the organisation has.
  if (url.startsWith('/v1/annotations')) return 300;
  if (url.includes('/rollouts/count')) return Math.max(RUN, MOST_COUNTED);
  return FILTERED.some((filter) => url.includes(q(filter))) ? RUN : MOST_READ;
};
/** Tables that grow with every rollout. */
const LARGE =
  /^(rollouts|rollout_heads|rollout_starts|rollout_meta|rollout_messages\w*|rollout_search\w*|rollout_tools|rollout_groups|rollout_tasks|rollout_transcripts|rollout_calls|step_rollups|tool_rollups|annotations|review_items|review_answers|runs)$/;

let database: Awaited<ReturnType<typeof createDatabase>>;
let server: TestServer;
let filled: Filled;
const ids: Record<string, string> = {};

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}
interface Explained {
  'Query Text': string;
  Plan: PlanNode;
}
const explained: Explained[] = [];

beforeAll(
  async () => {
    database = await createDatabase();
    server = await startServer({ databaseUrl: database.url });
    const { pool } = server.database;
    const { rows } = await pool.query('SELECT id FROM organisations WHERE name = $1', [server.orgName]);
    filled = await fillStore(pool, rows[0].id, ROLLOUTS);
    await settled(pool);
    await withoutLimit(pool, (client) => client.query('VACUUM ANALYZE'));
    const name = (await pool.query('SELECT current_database() AS name')).rows[0].name;
    await server.close();
    // PostgreSQL sends the plan of every statement of the service as a notice.
    const settings = { session_preload_libraries: 'auto_explain', 'auto_explain.log_min_duration': '0', 'auto_explain.log_analyze': 'on' };
    const format = { 'auto_explain.log_format': 'json', 'auto_explain.log_timing': 'off', 'auto_explain.log_parameter_max_length': '0' };
    server = await startServer({ databaseUrl: database.url, jobs: 'off' });
    for (const [key, value] of Object.entries({ ...settings, ...format, client_min_messages: 'log' }))
      await server.database.pool.query(`ALTER DATABASE ${name} SET ${key} = '${value}'`);
    server.serviceDatabase.pool.on('connect', (client: pg.PoolClient) =>
      client.on('notice', ({ message }) => {
        const json = /^duration: .* plan:\n(?<json>\{.*\})$/s.exec(message ?? '')?.groups?.['json'];
        if (json !== undefined) explained.push(JSON.parse(json) as Explained);
      }),
    );
    await server.database.pool
      .query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()', [name])
      .catch(() => {});
    await vi.waitUntil(async () => (await server.request('GET', '/v1/runs?limit=1')).status === 200, 20_000);
    const get = async (url: string) => (await server.request('GET', url)).body;
    for (const [key, run] of [
      ['huge', filled.huge],
      ['small', filled.small],
    ] as const) {
      const base = `/v1/runs/${encodeURIComponent(run)}`;
      ids[key] = base;
      ids[`${key} rollout`] = (await get(`${base}/rollouts?limit=1&sort=step&order=asc`)).rollouts[0].id;
      ids[`${key} group`] = (await get(`${base}/groups?limit=1`)).groups[0].key;
      ids[`${key} task`] = (await get(`${base}/tasks?limit=1`)).tasks[0].task.id;
      const queue = { name: key, run, sample: 10_000, overlap: 2 };
      ids[`${key} queue`] = (await server.request('POST', '/v1/review-queues', { body: queue })).body.id;
    }
    await server.database.pool.query(
      `INSERT INTO review_answers (org_id, queue_id, position, user_id, author, choice, answered_at)
       SELECT org_id, queue_id, position, md5(n::text)::uuid, 'r' || n, CASE position % 3 WHEN 0 THEN 'good' ELSE 'bad' END, now()
       FROM review_items, generate_series(1, 2) n WHERE position > 2`,
    );
    await server.database.pool.query('ANALYZE review_items, review_answers');
  },
  full ? 1_800_000 : 300_000,
);
afterAll(async () => {
  await server.close();
  await database.drop();
});

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** What is wrong with the plans of the statements since the last call. */
function faultsOf(plans: readonly Explained[], most: number): string[] {
  return plans.flatMap(({ 'Query Text': text, Plan }) =>
    nodesOf(Plan).flatMap((node) => {
      const table = node['Relation Name'];
      if (table === undefined || !LARGE.test(table)) return [];
      const loops = node['Actual Loops'];
      const removed = ((node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) * loops;
      const read = node['Actual Rows'] * loops + removed;
      const at = `${table} (${node['Index Name'] ?? node['Node Type']}) in ${text.replaceAll(/\s+/g, ' ').slice(0, 400)}`;
      // PostgreSQL reads a small table or partition rather than its index.
      const isScan = node['Node Type'] === 'Seq Scan' && read > 5_000;
      return [...(isScan ? [`sequential scan of ${table}: ${at}`] : []), ...(read > most ? [`${read} rows of ${at}`] : [])];
    }),
  );
}

/** Requests of each route; `{run}`, `{rollout}`, `{group}` and `{task}` stand for those of the huge and of the small run. */
const q = (text: string) => `q=${encodeURIComponent(text)}`;
const words = Object.values(TEXTS);
const SORTS = ['created_at', 'reward', 'step', 'task', 'turns', 'messages'];
const ORDERS = SORTS.flatMap((sort) => ['asc', 'desc'].map((order) => `sort=${sort}&order=${order}`));
const FILTERED = [
  'step:3',
  'step:999999',
  'reward:1',
  'reward:7',
  'has:error',
  'tag:rare',
  'tag:never',
  'tool:rare',
  'tool:never',
  'model:model1',
  'model:never',
];
const READS: Record<string, string[]> = {
  '/v1/alert-events': ['/v1/alert-events', '/v1/alert-events?run={name}'],
  '/v1/alerts': ['/v1/alerts'],
  '/v1/annotations': ['', 'run={name}', 'rollout={rollout}'].flatMap((of) =>
    ['', '&tag=seen', '&tag=rare', '&tag=never'].map((tag) => `/v1/annotations?${of}${tag}`),
  ),
  '/v1/compare': ['/v1/compare?runs={name},{name}'],
  '/v1/compare/tasks': ['/v1/compare/tasks?runs={name},{name}'],
  '/v1/diff': ['/v1/diff?a={rollout}&b={rollout}'],
  '/v1/environment-usage': ['/v1/environment-usage'],
  '/v1/exports': ['/v1/exports'],
  '/v1/review-queues': ['/v1/review-queues'],
  '/v1/review-queues/{id}': ['/v1/review-queues/{queue}'],
  '/v1/review-queues/{id}/items/{position}': ['/v1/review-queues/{queue}/items/2'],
  '/v1/rollouts/{id}': ['/v1/rollouts/{rollout}'],
  '/v1/rollouts/{id}/beside': ORDERS.map((order) => `/v1/rollouts/{rollout}/beside?${order}`),
  '/v1/rollouts/{id}/calls': ['/v1/rollouts/{rollout}/calls'],
  '/v1/rollouts/{id}/header': ['/v1/rollouts/{rollout}/header'],
  '/v1/rollouts/{id}/messages': ['/v1/rollouts/{rollout}/messages'],
  '/v1/rollouts/{id}/messages/{index}/body': ['/v1/rollouts/{rollout}/messages/0/body'],
  '/v1/rollouts/{id}/outline': ['/v1/rollouts/{rollout}/outline'],
  '/v1/runs': [
    '/v1/runs',
    '/v1/runs?limit=100',
    '/v1/runs?search=run',
    '/v1/runs?search=never',
    '/v1/runs?name={name}',
    '/v1/runs?tag=never',
  ],
  '/v1/runs/{id}': ['{run}'],
  '/v1/runs/{id}/rollouts': [
    '{run}/rollouts',
    '{run}/rollouts?offset=1000',
    ...ORDERS.map((order) => `{run}/rollouts?${order}`),
    ...[...words, ...FILTERED].map((text) => `{run}/rollouts?${q(text)}`),
    `{run}/rollouts?${q(`in:assistant ${TEXTS.rare}`)}`,
  ],
  '/v1/runs/{id}/rollouts/count': ['{run}/rollouts/count', `{run}/rollouts/count?${q('step:3')}`, `{run}/rollouts/count?${q('tag:rare')}`],
  '/v1/runs/{run}/alerts': ['{run}/alerts'],
  '/v1/runs/{run}/config': ['{run}/config'],
  '/v1/runs/{run}/facets': ['{run}/facets', `{run}/facets?${q('step:3')}`, ...words.map((word) => `{run}/facets?${q(word)}`)],
  '/v1/runs/{run}/failures': ['{run}/failures', '{run}/failures?steps=1..3'],
  '/v1/runs/{run}/groups': [
    '{run}/groups',
    '{run}/groups?sort=mean',
    '{run}/groups?sort=std&order=asc',
    '{run}/groups?steps=2',
    `{run}/groups?${q('has:error')}`,
    ...words.map((word) => `{run}/groups?${q(word)}`),
  ],
  '/v1/runs/{run}/groups/{key}': ['{run}/groups/{group}'],
  '/v1/runs/{run}/heatmap': ['{run}/heatmap', '{run}/heatmap?y=turns', '{run}/heatmap?x=window'],
  '/v1/runs/{run}/search': [
    ...words.map((word) => `{run}/search?${q(word)}`),
    `{run}/search?${q(TEXTS.common)}&within=${encodeURIComponent('step:3')}`,
    ...words.map((word) => `{run}/search?${q(word)}&mode=regex`),
  ],
  '/v1/runs/{run}/series': [
    '{run}/series',
    '{run}/series?m=reward&lens=trl',
    '{run}/series?m=reward_mean&x=time&by=env',
    '{run}/series?x=window&lens=skyrl&m=reward/avg_raw_reward',
  ],
  '/v1/runs/{run}/steps': ['{run}/steps'],
  '/v1/runs/{run}/summary': ['{run}/summary', '{run}/summary?den=effective', '{run}/summary?lens=trl'],
  '/v1/runs/{run}/tasks': ['{run}/tasks'],
  '/v1/runs/{run}/tasks/{task}': ['{run}/tasks/{task}'],
  '/v1/runs/{run}/tools': ['{run}/tools', '{run}/tools?steps=3'],
  '/v1/runs/{run}/moves': ['{run}/moves', '{run}/moves?step=3', '{run}/moves?step=3&phase=train'],
  '/v1/runs/{run}/tools/check': ['{run}/tools/check?tool=bash', '{run}/tools/check?tool=rare', '{run}/tools/check?tool=never'],
  '/v1/runs/{run}/tools/steps': ['{run}/tools/steps?tool=bash', '{run}/tools/steps?tool=rare', '{run}/tools/steps?tool=never'],
  '/v1/search': [...words, 'word77'].flatMap((word) => [`/v1/search?${q(word)}`, `/v1/search?${q(word)}&mode=regex`]),
  '/v1/views': ['/v1/views', '/v1/views?run={name}'],
};
/** Routes that read no table of rollouts, or one object by its key. */
const OTHERS =
  /^\/(health|list_environments|mcp\/|messages$|metrics$|nemo-gym\/|openenv\/|prompt$|read_file$|splits$|stat_file$|task_tools$|tools$|version$|\{env\}\/|v1\/(alerts\/|audit|billing|browser-sessions|deploys|environments|files|github|health|hosting|keys|me|members|namespace|organisation|sessions|shared|shares|slots|text-sessions|webhooks|exports\/)|v1\/rollouts\/\{id\}\/objects)/;

const concrete = (url: string, key: 'huge' | 'small') =>
  url
    .replaceAll('{run}', ids[key]!)
    .replaceAll('{rollout}', ids[`${key} rollout`]!)
    .replaceAll('{group}', ids[`${key} group`]!)
    .replaceAll('{task}', ids[`${key} task`]!)
    .replaceAll('{queue}', ids[`${key} queue`]!)
    .replaceAll('{name}', encodeURIComponent(filled[key]));

it('covers every read route of the OpenAPI document', () => {
  const reads = routes.filter(({ method, route }) => method === 'GET' && !OTHERS.test(route)).map(({ route }) => route);
  expect(reads.toSorted()).toEqual(Object.keys(READS).toSorted());
});

describe.each(['huge', 'small'] as const)('of a %s run, no statement reads more the larger the store is:', (key) => {
  it.each(Object.keys(READS))('%s', async (route) => {
    const faults: Record<string, string[]> = {};
    for (const url of READS[route]!.map((one) => concrete(one, key))) {
      explained.length = 0;
      const { status, body } = await server.request('GET', url);
      expect({ url, status, body: status === 200 ? null : body }).toMatchObject({ status: 200 });
      const found = faultsOf(explained, mostOf(url));
      if (explained.length === 0) found.push('no statement was seen');
      if (found.length > 0) faults[url] = found;
    }
    expect(faults).toEqual({});
  });
});

/** Rollouts of a run that one bulk annotation reads, and a little more. */
const MOST_ANNOTATED = 21_000;
it.each(['', 'step:3', 'has:error', 'tag:rare', 'tag:never', 'reward:7'])(
  'a bulk annotation of %j reads a part of its run with each request, to the end',
  async (query) => {
    const { body: counted } = await server.request('GET', `${ids['huge']}/rollouts/count?${q(query)}`);
    const annotate = async (cursor: string | null, limit: number) => {
      explained.length = 0;
      const body = { tag: `bulk ${query}`, query, as_of: counted.as_of, limit, ...(cursor !== null && { cursor }) };
      const answer = await server.request('POST', `${ids['huge']}/annotations`, { body });
      expect(answer).toMatchObject({ status: 200, body: { unchanged: 0, not_found: 0 } });
      expect(faultsOf(explained, MOST_ANNOTATED)).toEqual([]);
      return answer.body as { annotated: number; next: string | null };
    };
    const first = await annotate(null, 2);
    let annotated = first.annotated;
    let requests = 1;
    // The unconditional one would annotate the whole run.
    for (let { next } = first; next !== null && (query !== '' || requests < 3); requests += 1) {
      const page = await annotate(next, 1_000);
      annotated += page.annotated;
      next = page.next;
    }
    if (query === '') expect(annotated).toBe(2_002);
    else expect([annotated, requests >= Math.floor(RUN / MOST_ANNOTATED)]).toEqual([counted.count, true]);
  },
);

it('the check sees a scan, and rows that a filter removes', async () => {
  explained.length = 0;
  await server.serviceDatabase.pool.query('SELECT count(*) FROM rollouts WHERE bytes > 5000');
  await expect.poll(() => faultsOf(explained, MOST_READ).map((fault) => fault.slice(0, 30))).toHaveLength(2);
});
