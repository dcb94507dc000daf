import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCaller } from '../support/callers.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { textEnvironments } from '../support/text-environments.ts';
import { seeded, upload } from './run-reads.world.ts';

/**
 * Every route of the OpenAPI document that names something, asked by another organisation: its answer is that of a name that never was, so
 * that ids can neither be used nor probed, and what has that name stays as it is. A new route is asked too; a new kind of id wants a line here.
 */
const document = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, { parameters?: { in: string; name: string; required?: boolean }[] }>>;
};
const RUN = 'a run of one house';

let server: TestServer;
let upstream: RunningServer;
let stranger: Record<string, string>;
let env: string;
/** What stands in a path for each name of a parameter, by the beginning of the path; the longest that fits. */
let ids: Record<string, Record<string, string>>;
let sid: string;
/** What we are told of our own things. */
let before: unknown[];
const of = () => `run=${encodeURIComponent(RUN)}&rollout=${ids['/v1/rollouts/']!.id}`;
const everything = () =>
  Promise.all(
    [
      '/v1/runs',
      '/v1/annotations',
      '/v1/shares',
      '/v1/views',
      '/v1/keys',
      '/v1/exports',
      '/v1/members',
      `${env}/task-sets`,
      `/v1/sessions/${sid}`,
    ].map(async (url) => [url, (await server.request('GET', `${url}?${of()}`)).body]),
  );

beforeAll(async () => {
  [server, upstream] = await Promise.all([startServer(), serve(textEnvironments)]);
  stranger = (await createCaller(server, 'strangers')).headers;
  const made = async (method: string, url: string, body?: unknown, headers = {}) => {
    const answer = await server.request(method, url, { ...(body !== undefined && { body }), headers });
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const [rollout] = seeded(RUN, { steps: 1, tasks: 1, n: 2 });
  await upload(server, RUN, seeded(RUN, { steps: 1, tasks: 1, n: 2 }));
  await made('POST', '/v1/environments', { name: 'house', isPrivate: true, source: { kind: 'remote', url: upstream.url } });
  env = `/v1/environments/${server.orgName}/house`;
  const environment = await made('GET', env);
  const set = await made('POST', `${env}/task-sets`);
  const opened = await made('POST', '/v1/text-sessions', {
    environment: `${server.orgName}/house`,
    variant: 'abacus',
    split: 'train',
    index: 0,
  });
  await made('POST', `/v1/text-sessions/${opened.id}/step`, {
    text: '<tool_call>{"name": "count", "arguments": {}}</tool_call>',
  });
  await vi.waitUntil(async () => (await made('GET', `/v1/sessions/${opened.id}/calls`)).calls.length === 1, 20_000);
  const [{ task_id }] = (await made('GET', `/v1/sessions/${opened.id}/calls`)).calls;
  const run = await made('GET', `/v1/runs/${encodeURIComponent(RUN)}`);
  const { groups } = await made('GET', `/v1/runs/${encodeURIComponent(RUN)}/groups`);
  const { tasks } = await made('GET', `/v1/runs/${encodeURIComponent(RUN)}/tasks`);
  const annotation = await made('POST', '/v1/annotations', { rollout: rollout!.id, verdict: 'bad' });
  const shared = await made('POST', '/v1/shares', { rollout: rollout!.id });
  const view = await made('POST', '/v1/views', { run: RUN, name: 'mine', query: '', lens: 'canonical', state: {} });
  const key = await made('POST', '/v1/keys', { name: 'mine' });
  const exported = await made('POST', '/v1/exports', { run: RUN, format: 'jsonl' });
  const { user } = await made('GET', '/v1/me');
  await vi.waitUntil(async () => (await made('GET', `/v1/exports/${exported.id}`)).state === 'complete', 20_000);
  const { files } = await made('GET', `/v1/exports/${exported.id}`);
  const deployment = { owner: server.orgName, name: 'house', variant: 'abacus', id: set.id, split: 'train' };
  ids = {
    '/v1/rollouts/': { id: rollout!.id, index: '0', name: 'x' },
    '/v1/runs/': { id: run.id, run: RUN, key: groups[0].key, task: tasks[0].task.id },
    '/v1/environments/': deployment,
    '/v1/sessions/': { sid: opened.id, taskId: task_id },
    '/v1/text-sessions/': { id: opened.id },
    '/v1/annotations/': { id: annotation.id },
    '/v1/shares/': { id: shared.id },
    '/v1/views/': { id: view.id },
    '/v1/keys/': { id: key.id },
    '/v1/exports/': { id: exported.id, name: files[0].name },
    '/v1/members/': { id: user.id },
    '/v1/files/': { environmentId: environment.id, path: 'a.txt' },
    '/v1/github/': { id: environment.id, owner: server.orgName, name: 'house' },
    '/openenv/': { ...deployment, id: opened.id },
    '/mcp/': deployment,
    '/{env}/': { env: 'abacus' },
  };
  sid = opened.id;
  before = await everything();
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

/** Bodies that are good, where an empty one would be refused before anybody looks at the name. */
const BODIES: Record<string, object> = {
  'POST /v1/text-sessions/{id}/step': { text: 'x' },
  'POST /v1/sessions/{sid}/rollout': { run: 'theirs', rollout: 'x' },
  'POST /v1/environments/{owner}/{name}/versions': { source: { kind: 'remote', url: 'http://127.0.0.1:1' } },
  'PUT /v1/views/{id}': { run: RUN, name: 'x', query: '', lens: 'canonical', state: {} },
  'PATCH /v1/members/{id}': { role: 'member' },
  'PATCH /v1/runs/{id}': { tags: ['theirs'] },
  'POST /{env}/call': { name: 'count', input: {} },
  'POST /call': { name: 'count', input: {} },
  'POST /{env}/score_group': { candidates: [{ messages: [] }, { messages: [] }] },
  'POST /score_group': { candidates: [{ messages: [] }, { messages: [] }] },
  'POST /create': { split: 'train', index: 0 },
  'POST /mcp/{owner}/{name}': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
};
/** Of parameters that a route demands. */
const QUERIES: Record<string, string> = { split: 'train', q: 'fox', tool: 'search', runs: RUN, a: 'x', b: 'x' };
/** Parameters that are no names. */
const PLAIN = new Set(['index', 'split', 'variant', 'env']);

const routes = Object.entries(document.paths).flatMap(([route, methods]) =>
  Object.keys(methods).map((method) => [method.toUpperCase(), route] as const),
);
const parametersOf = (route: string) => [...route.matchAll(/{(\w+)}/g)].map(([, name]) => name!);
const ours = (route: string) =>
  Object.entries(ids)
    .filter(([prefix]) => route.startsWith(prefix))
    .toSorted(([a], [b]) => b.length - a.length)[0]?.[1] ?? {};
/** A name of the same shape that nobody has. */
const unlike = (value: string) => {
  if (/^[0-9a-f-]{36}$/.test(value)) return randomUUID();
  return /^-?[0-9]+$/.test(value) ? '987654321' : `${value}-never-was`;
};

/** The answer, with the names that were asked for taken out. */
async function ask(method: string, route: string, values: Record<string, string>, session: string, headers: Record<string, string>) {
  const url = route.replaceAll(/{(\w+)}/g, (_all, name: string) => encodeURIComponent(values[name]!));
  const body = method === 'GET' || method === 'DELETE' ? undefined : (BODIES[`${method} ${route}`] ?? {});
  const deployment = `${server.orgName}/${values['name'] ?? 'house'}`;
  const demanded = (document.paths[route]![method.toLowerCase()]!.parameters ?? []).filter((each) => each.in === 'query' && each.required);
  const query = new URLSearchParams(demanded.map(({ name }) => [name, QUERIES[name]!]));
  const answer = await server.request(method, `${url}?${query.toString()}`, {
    ...(body && { body }),
    headers: { 'x-session-id': session, 'mcp-session-id': session, 'x-deployment': deployment, ...headers },
  });
  const asked = [session, ...Object.values(values).filter((value) => value.length > 3)];
  return { status: answer.status, body: asked.reduce((text, value) => text.replaceAll(value, '*'), JSON.stringify(answer.body)) };
}

/** Read by a stream that does not end, made elsewhere, or nothing of an organisation. */
const UNREAD =
  /\/events$|\/{id}\/file$|^\/mcp\/|^\/v1\/github\/|\/objects\/|^\/openenv\/.*\/(container|state)|^\/health|^\/metrics|^\/version/;

describe('the names that are asked for', () => {
  const read = routes.filter(([method, route]) => method === 'GET' && parametersOf(route).length > 0 && !UNREAD.test(route));
  test.each(read)('are known to us: %s %s', async (method, route) => {
    const own = { 'x-api-key': server.apiKey };
    expect(await ask(method, route, ours(route), sid, own)).toMatchObject({ status: 200 });
  });
});

describe('what another organisation is told of our names', () => {
  const named = routes.filter(([, route]) => parametersOf(route).length > 0 || !route.startsWith('/v1/'));
  test.each(named)('%s %s', async (method, route) => {
    const values = ours(route);
    for (const name of parametersOf(route)) expect(values, `what stands for {${name}}`).toHaveProperty(name);
    const other = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, PLAIN.has(name) ? value : unlike(value)]));
    const theirs = await ask(method, route, values, sid, stranger);
    expect(theirs).toEqual(await ask(method, route, other, randomUUID(), stranger));
    expect(theirs.body).not.toContain(RUN);
  });
});

test('lists of another organisation have nothing of ours', async () => {
  const names = new Set(
    Object.values(ids).flatMap((values) =>
      Object.entries(values).flatMap(([name, value]) => (PLAIN.has(name) || name === 'owner' || value.length < 4 ? [] : [value])),
    ),
  );
  for (const [method, route] of routes.filter(([verb, path]) => verb === 'GET' && parametersOf(path).length === 0)) {
    const { body } = await server.request(method, `${route}?q=fox&${of()}`, { headers: stranger });
    const text = JSON.stringify(body);
    for (const name of names) expect([route, text.includes(name)]).toEqual([route, false]);
  }
});

test('after all of that everything is as it was', async () => {
  const unsigned = (all: unknown) => JSON.parse(JSON.stringify(all).replaceAll(/\?method=[^"]*/g, '')) as unknown;
  expect(unsigned(await everything())).toEqual(unsigned(before));
});
