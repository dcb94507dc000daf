import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { vi } from 'vitest';
import type { TestServer } from '../../support/server.ts';
import { seeded, upload } from '../runs/run-reads.world.ts';

/** Every route of the OpenAPI document, and an organisation that has one of everything that routes name. A new kind of id wants a line in `furnish`. */
interface Response {
  description: string;
  content?: Record<string, { schema: object; 'x-events'?: Record<string, object> }>;
}
interface Operation {
  parameters?: { in: string; name: string; required?: boolean }[];
  responses: Record<string, Response | { $ref: string }>;
  requestBody?: { content: Record<string, { schema: { properties?: Record<string, unknown> } }> };
}
export const document = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../../docs/openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
  components: { responses: Record<string, Response> };
};
export const RUN = 'a run of one house';

export interface Route {
  method: string;
  route: string;
  /** Names of what stands in braces in its path. */
  names: string[];
  /** Parameters of its query, and those that it demands. */
  queries: string[];
  demanded: string[];
  headers: string[];
  /** Names of the members of its JSON body. */
  members: string[];
  /** By status: the schema of a 200 in JSON, and the codes of errors. */
  responses: Record<string, Response>;
}

/** A response, or the component that it names. */
const resolved = (response: Response | { $ref: string }): Response =>
  '$ref' in response ? document.components.responses[response.$ref.replace('#/components/responses/', '')]! : response;

export const routes: Route[] = Object.entries(document.paths).flatMap(([route, methods]) =>
  Object.entries(methods).map(([method, { parameters = [], requestBody, responses }]) => {
    const queries = parameters.filter((each) => each.in === 'query');
    return {
      responses: Object.fromEntries(Object.entries(responses).map(([status, response]) => [status, resolved(response)])),
      method: method.toUpperCase(),
      route,
      names: [...route.matchAll(/{(\w+)}/g)].map(([, name]) => name!),
      queries: queries.map(({ name }) => name),
      headers: parameters.filter((each) => each.in === 'header').map(({ name }) => name),
      demanded: queries.filter(({ required }) => required).map(({ name }) => name),
      members: Object.keys(requestBody?.content['application/json']?.schema.properties ?? {}),
    };
  }),
);

export interface House {
  /** The path of its environment. */
  env: string;
  rollout: string;
  sid: string;
  /** What stands in a path for each name of a parameter, by the beginning of the path; the longest that fits. */
  ids: Record<string, Record<string, string>>;
}

/** One of everything, in the server's own organisation. `upstreamUrl`: an ORS server with `textEnvironments`. */
export async function furnish(server: TestServer, upstreamUrl: string): Promise<House> {
  const made = async (method: string, url: string, body?: unknown) => {
    const answer = await server.request(method, url, body === undefined ? {} : { body });
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const rollouts = seeded(RUN, { steps: 1, tasks: 1, n: 2 });
  const rollout = rollouts[0]!.id;
  await upload(server, RUN, rollouts);
  await made('POST', '/v1/environments', { name: 'house', isPrivate: true, source: { kind: 'remote', url: upstreamUrl } });
  const env = `/v1/environments/${server.orgName}/house`;
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
  await vi.waitUntil(async () => (await made('GET', `/v1/sessions/${opened.id}/calls`)).calls.length === 1, 60_000);
  const [{ task_id }] = (await made('GET', `/v1/sessions/${opened.id}/calls`)).calls;
  const run = await made('GET', `/v1/runs/${encodeURIComponent(RUN)}`);
  const { groups } = await made('GET', `/v1/runs/${encodeURIComponent(RUN)}/groups`);
  const { tasks } = await made('GET', `/v1/runs/${encodeURIComponent(RUN)}/tasks`);
  const annotation = await made('POST', '/v1/annotations', { rollout, verdict: 'bad' });
  const shared = await made('POST', '/v1/shares', { rollout });
  const view = await made('POST', '/v1/views', { run: RUN, name: 'mine', query: '', lens: 'canonical', state: {} });
  const queue = await made('POST', '/v1/review-queues', { name: 'mine', run: RUN });
  await made('POST', `/v1/review-queues/${queue.id}/next`, {});
  const key = await made('POST', '/v1/keys', { name: 'mine' });
  const alert = await made('POST', '/v1/alerts', { name: 'mine', condition: { kind: 'silence', minutes: 60 } });
  const webhook = await made('POST', '/v1/webhooks', { name: 'mine', url: 'http://127.0.0.1:1/' });
  const delivery = await made('POST', `/v1/webhooks/${webhook.id}/test`);
  const exported = await made('POST', '/v1/exports', { run: RUN, format: 'jsonl' });
  const { user } = await made('GET', '/v1/me');
  await vi.waitUntil(async () => (await made('GET', `/v1/exports/${exported.id}`)).state === 'complete', 60_000);
  const { files } = await made('GET', `/v1/exports/${exported.id}`);
  const deployment = { owner: server.orgName, name: 'house', variant: 'abacus', id: set.id, split: 'train' };
  const ids: House['ids'] = {
    '/v1/rollouts/': { id: rollout, index: '0', name: 'x' },
    '/v1/runs/': { id: run.id, run: RUN, key: groups[0].key, task: tasks[0].task.id },
    '/v1/environments/': deployment,
    '/v1/sessions/': { sid: opened.id, taskId: task_id },
    '/v1/text-sessions/': { id: opened.id },
    '/v1/annotations/': { id: annotation.id },
    '/v1/shares/': { id: shared.id },
    '/v1/views/': { id: view.id },
    '/v1/review-queues/': { id: queue.id, position: '1' },
    '/v1/keys/': { id: key.id },
    '/v1/alerts/': { id: alert.id },
    '/v1/webhooks/': { id: webhook.id, delivery: delivery.id },
    '/v1/exports/': { id: exported.id, name: files[0].name },
    '/v1/members/': { id: user.id },
    '/v1/files/': { environmentId: environment.id, path: 'a.txt' },
    '/v1/github/': { id: environment.id, owner: server.orgName, name: 'house' },
    '/openenv/': { ...deployment, id: opened.id },
    '/mcp/': deployment,
    '/nemo-gym/': { ...deployment, tool: 'count' },
    '/{env}/': { env: 'abacus' },
  };
  return { env, rollout, sid: opened.id, ids };
}

export const idsOf = ({ ids }: House, { route }: Route): Record<string, string> =>
  Object.entries(ids)
    .filter(([prefix]) => route.startsWith(prefix))
    .toSorted(([a], [b]) => b.length - a.length)[0]?.[1] ?? {};

/** Parameters that are no names. */
export const PLAIN = new Set(['index', 'position', 'split', 'variant', 'env']);
/** A name of the same shape that nobody has. */
export function unlike(value: string): string {
  if (/^[0-9a-f-]{36}$/.test(value)) return randomUUID();
  return /^-?[0-9]+$/.test(value) ? '987654321' : `${value}-never-was`;
}

/** Bodies that are good, where an empty one would be refused before anybody looks at a name. */
const BODIES: Record<string, object> = {
  'POST /v1/text-sessions/{id}/step': { text: 'x' },
  'POST /v1/sessions/{sid}/rollout': { run: 'theirs', rollout: 'x' },
  'POST /v1/environments/{owner}/{name}/versions': { source: { kind: 'remote', url: 'http://127.0.0.1:1' } },
  'PUT /v1/environments/{owner}/{name}/report': {
    created_at: '2026-01-01T00:00:00Z',
    kit: '0.1.0',
    checks: [],
    players: [],
    reward_range: null,
  },
  'PUT /v1/views/{id}': { run: RUN, name: 'x', query: '', lens: 'canonical', state: {} },
  'PUT /v1/alerts/{id}': { name: 'x', condition: { kind: 'silence', minutes: 60 } },
  'POST /v1/alerts': { name: 'x', condition: { kind: 'silence', minutes: 60 } },
  'POST /v1/alerts/preview': { run: RUN, condition: { kind: 'silence', minutes: 60 } },
  'POST /v1/alert-events/read': { until: randomUUID() },
  'POST /v1/webhooks': { name: 'x', url: 'http://127.0.0.1:1/' },
  'PATCH /v1/members/{id}': { role: 'member' },
  'PATCH /v1/runs/{id}': { tags: ['theirs'] },
  'POST /{env}/call': { name: 'count', input: {} },
  'POST /call': { name: 'count', input: {} },
  'POST /{env}/score_group': { candidates: [{ messages: [] }, { messages: [] }] },
  'POST /score_group': { candidates: [{ messages: [] }, { messages: [] }] },
  'POST /create': { split: 'train', index: 0 },
  'POST /tasks': { split: 'train' },
  'POST /task': { split: 'train', index: 0 },
  'POST /task_range': { split: 'train' },
  'POST /nemo-gym/{owner}/{name}/seed_session': { palestra: { split: 'train', task_index: 0, variant: 'abacus' } },
  'POST /mcp/{owner}/{name}': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  'POST /v1/runs/{run}/annotations': { tag: 'theirs', rollouts: [randomUUID()] },
  'POST /v1/annotations': { rollout: randomUUID(), verdict: 'bad' },
  'POST /v1/environments': { name: 'other', source: { kind: 'remote', url: 'http://127.0.0.1:1' } },
  'POST /v1/exports': { run: RUN, format: 'jsonl' },
  'POST /v1/exports/tasks': { environments: ['local/house'], split: 'train', format: 'jsonl' },
  'POST /v1/keys': { name: 'k' },
  'POST /v1/members': { name: 'm' },
  'POST /v1/sessions': { environment: 'local/house', variant: 'abacus', split: 'train', index: 0 },
  'POST /v1/review-queues': { name: 'theirs', run: RUN },
  'PUT /v1/review-queues/{id}/items/{position}': { choice: 'good' },
  'POST /v1/shares': { rollout: randomUUID() },
  'POST /v1/text-sessions': { environment: 'local/house', variant: 'abacus', split: 'train', index: 0 },
  'POST /v1/views': { run: RUN, name: 'another', query: '', lens: 'canonical', state: {} },
};
/** undefined where the method has none. */
export const bodyOf = ({ method, route }: Route): object | undefined =>
  method === 'GET' || method === 'DELETE' ? undefined : (BODIES[`${method} ${route}`] ?? {});

/** Of parameters that a route demands. */
const QUERIES: Record<string, string> = { split: 'train', q: 'fox', tool: 'search', runs: RUN, a: 'x', b: 'x' };
export const demandedOf = ({ demanded }: Route): Record<string, string> =>
  Object.fromEntries(demanded.map((name) => [name, QUERIES[name]!]));

export const urlOf = ({ route }: Route, values: Record<string, string>, query: Record<string, string> = {}): string => {
  const url = route.replaceAll(/{(\w+)}/g, (_all, name: string) => encodeURIComponent(values[name]!));
  return Object.keys(query).length === 0 ? url : `${url}?${new URLSearchParams(query).toString()}`;
};

/** The session that a request is about, in each dialect's header. */
export const sessionHeaders = (server: TestServer, sid: string, name = 'house'): Record<string, string> => ({
  'x-session-id': sid,
  'mcp-session-id': sid,
  'x-deployment': `${server.orgName}/${name}`,
});
