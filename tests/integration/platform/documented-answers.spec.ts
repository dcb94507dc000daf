import { type RunningServer, serve } from '@palestra/environment-kit';
import { SseParser } from '@palestra/kit/sse';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { textEnvironments } from '../../support/text-environments.ts';
import {
  bodyOf,
  demandedOf,
  document,
  furnish,
  type House,
  idsOf,
  type Route,
  routes,
  sessionHeaders,
  urlOf,
} from './every-route.world.ts';

/** Every route of the OpenAPI document, asked as it says: the answer is one that it describes, whole and without a member more. */
let server: TestServer;
let upstream: RunningServer;
let house: House;
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
beforeAll(async () => {
  [server, upstream] = await Promise.all([sharedServer(), serve(textEnvironments)]);
  house = await furnish(server, upstream.url);
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

/** What ends the session of the test or its organisation. The routes of MCP and the streams have their own tests. */
const APART = /\/events$|^\/mcp\/|^\/v1\/(logout|organisations)/;
const asked = routes.filter(({ method, route }) => method !== 'DELETE' && !APART.test(route));

interface Answer {
  status: number;
  body: any;
  headers: Headers;
}

/** Why the document does not describe the answer; empty when it does. */
function differences({ responses }: Route, { status, body, headers }: Answer): unknown[] {
  const described = responses[status];
  if (described === undefined) return [`undocumented status ${status}`, body];
  const type = headers.get('content-type')?.split(';')[0] ?? null;
  const { content = {} } = described;
  if (type === null || '*/*' in content) return type === null && body !== '' ? ['a body without a type'] : [];
  const media = content[type];
  if (media === undefined) return [`undocumented type ${type} of ${status}`];
  const code = body.code ?? body.error?.data?.code;
  const isKnown = status < 400 || code === undefined || described.description.split(', ').includes(code);
  if (!isKnown) return [`undocumented code ${code} of ${status}`];
  return type === 'application/json'
    ? faults(media.schema, body)
    : type === 'text/event-stream'
      ? streamFaults(media['x-events'], body)
      : [];
}

function faults(schema: object, value: unknown): unknown[] {
  const validate = ajv.compile({ ...schema, components: document.components });
  validate(value);
  return validate.errors?.map(({ instancePath, message, params }) => [instancePath, message, params]) ?? [];
}

function streamFaults(events: Record<string, object> | undefined, text: string): unknown[] {
  const received = new SseParser().push(text);
  if (received.length === 0) return ['a stream without events'];
  return received.flatMap(({ event, data }) => {
    const schema = events?.[event];
    if (schema === undefined) return [`undocumented event ${event}`];
    // An event without data has only an id.
    if (data === '') return [];
    return faults(schema, (schema as { type?: string }).type === 'string' ? data : JSON.parse(data));
  });
}

const routeOf = (method: string, route: string): Route => routes.find((each) => each.method === method && each.route === route)!;

test.each(asked)('$method $route', async (route) => {
  const body = bodyOf(route);
  const about = body && 'rollout' in body && route.route !== '/v1/sessions/{sid}/rollout' ? { ...body, rollout: house.rollout } : body;
  const answer = await server.request(route.method, urlOf(route, idsOf(house, route), demandedOf(route)), {
    headers: sessionHeaders(server, house.sid),
    ...(about && { body: about }),
  });
  expect(differences(route, answer)).toEqual([]);
});

/** Routes of a session, in every protocol. */
const ofSessions = asked.filter(
  ({ route, headers }) =>
    headers.includes('x-session-id') || /^\/v1\/(text-)?sessions\/\{|^\/(\{env\}\/)?(ping|prompt|messages|task_tools|delete)/.test(route),
);
test('the routes of a session answer as described when it has ended', async () => {
  const task = { environment: `${server.orgName}/house`, variant: 'abacus', split: 'train', index: 0 };
  const { id } = (await server.request('POST', '/v1/text-sessions', { body: task })).body;
  await server.request('DELETE', `/v1/sessions/${id}`);
  const told: unknown[] = [];
  const gone = new Set<number>();
  expect(ofSessions.length).toBeGreaterThan(15);
  for (const route of ofSessions) {
    const answer = await server.request(route.method, urlOf(route, { ...idsOf(house, route), sid: id, id }, demandedOf(route)), {
      headers: sessionHeaders(server, id),
      ...(bodyOf(route) && { body: bodyOf(route) }),
    });
    gone.add(answer.status);
    told.push(...differences(route, answer).map((difference) => [route.method, route.route, difference]));
  }
  expect(told).toEqual([]);
  expect([...gone]).toContain(410);
});

test('a request with too many headers is answered as every route says', async () => {
  const answer = await server.request('GET', '/v1/me', { headers: { 'x-padding': 'x'.repeat(20_000) } });
  expect(answer.status).toBe(431);
  expect(routes.map((route) => differences(route, answer)).filter((told) => told.length > 0)).toEqual([]);
});

describe('event streams', () => {
  const open = async (headers: Record<string, string> = {}) => {
    const { body } = await server.request('POST', '/create_session', {
      body: {},
      headers: { ...sessionHeaders(server, ''), 'x-session-id': '', ...headers },
    });
    const sid = String(new SseParser().push(body)[0]!.data);
    await server.request('POST', '/create', {
      body: { split: 'train', index: 0, env_name: 'abacus' },
      headers: sessionHeaders(server, sid),
    });
    return { sid, text: body };
  };
  const call = (sid: string, name: string, headers: Record<string, string> = {}) =>
    server.request('POST', '/call', { body: { name, input: {} }, headers: { ...sessionHeaders(server, sid), ...headers } });

  test.each([
    ['finish', {}, 'end'],
    ['look', {}, 'end'],
    ['boom', {}, 'error'],
    ['boom', { 'x-palestra-failure': '1' }, 'failure'],
  ])('the call of %s with %j ends with %s', async (tool, headers, last) => {
    const { sid } = await open();
    const answer = await call(sid, tool, headers as Record<string, string>);
    expect(differences(routeOf('POST', '/call'), answer)).toEqual([]);
    expect(new SseParser().push(answer.body).at(-1)!.event).toBe(last);
  });

  test('a reservation that waits for a slot, and the events of a session', async () => {
    const reserved = await server.request('POST', '/create_session', {
      body: {},
      headers: { 'x-deployment': `${server.orgName}/house`, 'x-palestra-queue': '1', 'x-palestra-failure': '1' },
    });
    expect(differences(routeOf('POST', '/create_session'), reserved)).toEqual([]);
    const { sid } = await open();
    await call(sid, 'finish');
    await server.request('DELETE', `/v1/sessions/${sid}`);
    const events = await server.request('GET', `/v1/sessions/${sid}/events?after=0`);
    expect(differences(routeOf('GET', '/v1/sessions/{sid}/events'), events)).toEqual([]);
    expect(new SseParser().push(events.body).map(({ event }) => event)).toEqual(expect.arrayContaining(['call', 'end']));
  });
});

describe('MCP', () => {
  const PATH = '/mcp/{owner}/{name}';
  const ACCEPT = 'application/json, text/event-stream';
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  };
  const rpc = (method: string, params = {}) => ({ jsonrpc: '2.0', id: 2, method, params });
  const ask = (
    method: string,
    { body, headers, environment = 'house' }: { body?: unknown; headers?: Record<string, string>; environment?: string },
  ) =>
    server.request(method, `/mcp/${server.orgName}/${environment}?variant=abacus&index=0`, {
      headers: { accept: ACCEPT, ...headers },
      ...(body !== undefined && { body }),
    });
  let sid: string;
  beforeAll(async () => {
    sid = (await ask('POST', { body: initialize })).headers.get('mcp-session-id')!;
  });

  test.each<
    [
      what: string,
      status: number,
      method: string,
      request: () => { body?: unknown; headers?: Record<string, string>; environment?: string },
    ]
  >([
    ['a list of tools', 200, 'POST', () => ({ body: rpc('tools/list'), headers: { 'mcp-session-id': sid } })],
    ['a call', 200, 'POST', () => ({ body: rpc('tools/call', { name: 'count', arguments: {} }), headers: { 'mcp-session-id': sid } })],
    ['an unknown method', 200, 'POST', () => ({ body: rpc('no/such'), headers: { 'mcp-session-id': sid } })],
    [
      'a notification',
      202,
      'POST',
      () => ({ body: { jsonrpc: '2.0', method: 'notifications/initialized' }, headers: { 'mcp-session-id': sid } }),
    ],
    ['no JSON', 422, 'POST', () => ({ body: '{', headers: { 'mcp-session-id': sid } })],
    ['no JSON-RPC', 400, 'POST', () => ({ body: { x: 1 }, headers: { 'mcp-session-id': sid } })],
    ['no session', 400, 'POST', () => ({ body: rpc('tools/list') })],
    ['an unknown session', 404, 'POST', () => ({ body: rpc('tools/list'), headers: { 'mcp-session-id': 'nobody' } })],
    ['an unknown environment', 404, 'POST', () => ({ body: initialize, environment: 'nothing' })],
    ['a wrong key', 401, 'POST', () => ({ body: initialize, headers: { 'x-api-key': 'or_wrong' } })],
    ['an unknown split', 400, 'POST', () => ({ body: initialize, headers: { 'x-palestra-split': 'none' } })],
    [
      'a type that is not accepted',
      406,
      'POST',
      () => ({ body: rpc('tools/list'), headers: { 'mcp-session-id': sid, accept: 'text/html' } }),
    ],
    [
      'another content type',
      415,
      'POST',
      () => ({ body: '{"jsonrpc":"2.0","id":1,"method":"ping"}', headers: { 'mcp-session-id': sid, 'content-type': 'text/plain' } }),
    ],
    ['listening without a session', 405, 'GET', () => ({})],
    ['listening to an unknown session', 404, 'GET', () => ({ headers: { 'mcp-session-id': 'nobody' } })],
    ['an end without a session', 400, 'DELETE', () => ({})],
    ['an end of an unknown session', 404, 'DELETE', () => ({ headers: { 'mcp-session-id': 'nobody' } })],
  ])('%s is %i', async (_what, status, method, request) => {
    const answer = await ask(method, request());
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    expect(differences(routeOf(method, PATH), answer)).toEqual([]);
  });

  test('a parse error has the code of JSON-RPC', async () => {
    const answer = await ask('POST', { body: '{', headers: { 'mcp-session-id': sid } });
    expect(answer.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32_700, data: { code: 'invalid_json', status: 422 } } });
  });

  test('its end, and a request after it', async () => {
    const opened = await ask('POST', { body: initialize });
    expect(differences(routeOf('POST', PATH), opened)).toEqual([]);
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id')! };
    expect(differences(routeOf('DELETE', PATH), await ask('DELETE', { headers }))).toEqual([]);
    const late = await ask('POST', { body: rpc('tools/list'), headers });
    expect(late).toMatchObject({ status: 404, body: { error: { data: { code: 'session_deleted' } } } });
    expect(differences(routeOf('POST', PATH), late)).toEqual([]);
  });
});
