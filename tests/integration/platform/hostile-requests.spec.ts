import { request as send } from 'node:http';
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { textEnvironments } from '../../support/text-environments.ts';
import {
  bodyOf,
  demandedOf,
  furnish,
  type House,
  idsOf,
  PLAIN,
  type Route,
  routes,
  sessionHeaders,
  unlike,
  urlOf,
} from './every-route.world.ts';

/** Values that no client should send, in every place of every route of the OpenAPI document: a refusal of the catalogue, and never a fault of ours. */
let server: TestServer;
let upstream: RunningServer;
let house: House;
beforeAll(async () => {
  [server, upstream] = await Promise.all([sharedServer(), serve(textEnvironments)]);
  house = await furnish(server, upstream.url);
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

const TEXTS = [
  'a\0b',
  '%00',
  'x'.repeat(5_000),
  '💥é',
  '-1',
  '1e400',
  '2147483648',
  '9007199254740993',
  '"\\',
  "';--",
  '[]',
  '5..2',
  'reward:>',
  '((((',
];
const nested = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown;
const VALUES = [
  null,
  true,
  -1,
  1.5,
  1e308,
  2_147_483_648,
  '',
  '\0',
  '\ud800',
  'x'.repeat(70_000),
  [],
  [null],
  { '\0': '\0' },
  { a: '\ud800' },
  nested,
];
const RAW = ['', '{', 'null', '[]', '1', '\ufeff{}', '{"x":1e999}', '['.repeat(20_000)];
/** Live streams, and what closes the door behind us. */
const APART = /\/events$|^\/openenv\/.*\/(container|state)|^\/v1\/(organisation|logout)/;

const COMPLETE = { code: expect.any(String), message: expect.any(String), detail: expect.anything() };
const failed = (status: number, what: string) => (status < 500 || status === 501 ? null : `${status}: ${what}`);

/** A JSON-RPC error has the code of the catalogue in its data. Those of the official MCP package have none. */
function isDocumentedRpc({ responses }: Route, status: number, told: Record<string, unknown>): boolean {
  const { data } = told['error'] as { data?: { code?: string } };
  const described = responses[status]?.description.split(', ');
  return described !== undefined && (data?.code === undefined || described.includes(data.code));
}

async function hit(route: Route, url: string, { body, raw }: { body?: unknown; raw?: string } = {}): Promise<string | null> {
  const what = `${route.method} ${url.slice(0, 120)} ${raw?.slice(0, 60) ?? JSON.stringify(body)?.slice(0, 120)}`;
  const controller = new AbortController();
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const answer = await fetch(server.url + url, {
    method: route.method,
    signal: AbortSignal.any([controller.signal, AbortSignal.timeout(20_000)]),
    headers: {
      'x-api-key': server.apiKey,
      ...sessionHeaders(server, house.sid),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
    },
    ...(sent !== undefined && { body: sent }),
  });
  if (answer.headers.get('content-type')?.includes('event-stream')) {
    controller.abort();
    return failed(answer.status, what);
  }
  const text = await answer.text();
  const { status } = answer;
  if (status < 400 || failed(status, what) !== null) return failed(status, `${what} ${text.slice(0, 200)}`);
  const told = JSON.parse(text) as Record<string, unknown>;
  if ('jsonrpc' in told) return isDocumentedRpc(route, status, told) ? null : `not in the OpenAPI document: ${status} ${text} ${what}`;
  if (['code', 'message', 'detail'].some((member) => told[member] === undefined))
    return `not of the catalogue: ${what} ${text.slice(0, 200)}`;
  const documented = route.responses[status]?.description.split(', ').includes(String(told['code']));
  return documented ? null : `not in the OpenAPI document: ${status} ${String(told['code'])} ${what}`;
}

const valuesOf = (route: Route) => {
  const own = idsOf(house, route);
  if (route.method !== 'DELETE' && !/members|keys/.test(route.route)) return own;
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, PLAIN.has(name) ? value : unlike(value)]));
};

type Members = Record<string, unknown>;
/** Where a member is, at any depth: `['source']`, `['source', 'url']`. */
const placesOf = (value: Members): string[][] =>
  Object.entries(value).flatMap(([name, inner]) => [
    [name],
    ...(typeof inner === 'object' && inner !== null ? placesOf(inner as Members).map((rest) => [name, ...rest]) : []),
  ]);
/** A copy that has `value` there. */
const put = (body: object, [name, ...rest]: string[], value: unknown): object =>
  Object.assign(Array.isArray(body) ? [...(body as unknown[])] : { ...body }, {
    [name!]: rest.length === 0 ? value : put((body as Members)[name!] as object, rest, value),
  });

describe('hostile values are refused or harmless', () => {
  test.each(routes.filter(({ route }) => !APART.test(route)))('$method $route', async (route) => {
    const values = valuesOf(route);
    const body = bodyOf(route);
    const good = body && 'rollout' in body && route.route !== '/v1/sessions/{sid}/rollout' ? { ...body, rollout: house.rollout } : body;
    const faults: (string | null)[] = [];
    const each = async <T>(of: T[], one: (value: T) => Promise<string | null>) => faults.push(...(await Promise.all(of.map(one))));
    for (const name of route.names) await each(TEXTS, (text) => hit(route, urlOf(route, { ...values, [name]: text }), { body: good }));
    for (const name of route.queries)
      await each(TEXTS, (text) => hit(route, urlOf(route, values, { ...demandedOf(route), [name]: text }), { body: good }));
    if (good !== undefined) await each(RAW, (raw) => hit(route, urlOf(route, values), { raw }));
    for (const place of good === undefined ? [] : placesOf({ ...Object.fromEntries(route.members.map((name) => [name, null])), ...good }))
      await each(VALUES, (value) => hit(route, urlOf(route, values), { body: put(good!, place, value) }));
    expect(faults.filter(Boolean)).toEqual([]);
  });
});

describe('requests without a route get an error of the catalogue', () => {
  /** As a client that does not mend addresses sends it. */
  const get = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number; body: unknown }>((resolve, reject) => {
      const { hostname, port } = new URL(server.url);
      send({ hostname, port, path, headers }, (answer) => {
        textOf(answer)
          .then((body) => resolve({ status: answer.statusCode!, body: JSON.parse(body) as unknown }))
          .catch((error: unknown) => reject(new Error(path.slice(0, 60), { cause: error })));
      })
        .on('error', reject)
        .end();
    });

  test('invalid addresses', async () => {
    expect(await get('/v1/runs/%ED%A0%80')).toMatchObject({ status: 400, body: { ...COMPLETE, code: 'invalid_request' } });
    expect(await get(`/v1/runs/${'x'.repeat(5_000)}`)).toMatchObject({ status: 404, body: { ...COMPLETE, code: 'route_not_found' } });
    expect(await get(`/v1/runs/${'x'.repeat(5_000)}/summary`)).toMatchObject({ status: 404, body: COMPLETE });
    expect(await get('/v1/runs/x/nothing')).toMatchObject({ status: 404, body: { ...COMPLETE, code: 'route_not_found' } });
    expect(await get('/v1/runs?search=%00')).toMatchObject({ status: 400, body: { ...COMPLETE, detail: expect.stringContaining('NUL') } });
  });

  test('invalid requests', async () => {
    expect(await get('/health', { 'x-session-id': 'x'.repeat(40_000) })).toMatchObject({
      status: 431,
      body: { ...COMPLETE, detail: expect.stringContaining('headers') },
    });
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.write('HELLO\r\n\r\n');
    const answer = await textOf(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject(COMPLETE);
  });
});

test('a session id must fit into a header', async () => {
  const body = (sid: string) => ({ environment: `${server.orgName}/house`, variant: 'abacus', split: 'train', index: 0, sid });
  for (const sid of ['\ud800', 'é', ' x', 'a\nb'])
    expect(await server.request('POST', '/v1/sessions', { body: body(sid) })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('printable ASCII') },
    });
  expect(await server.request('POST', '/create_session', { body: { task_id: 'x'.repeat(501) } })).toMatchObject({ status: 400 });
  expect(await server.request('POST', '/v1/sessions', { body: body('a session/of mine:1') })).toMatchObject({ status: 200 });
});
