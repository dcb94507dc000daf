import { randomUUID } from 'node:crypto';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCaller } from '../support/callers.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { textEnvironments } from '../support/text-environments.ts';
import {
  bodyOf,
  demandedOf,
  furnish,
  type House,
  idsOf,
  PLAIN,
  type Route,
  routes,
  RUN,
  sessionHeaders,
  unlike,
  urlOf,
} from './every-route.world.ts';

/**
 * Every route of the OpenAPI document that names something, asked by another organisation: its answer is that of a name that never was, so
 * that ids can neither be used nor probed, and what has that name stays as it is.
 */
let server: TestServer;
let upstream: RunningServer;
let stranger: Record<string, string>;
let house: House;
/** What we are told of our own things. */
let before: unknown[];
const of = () => `run=${encodeURIComponent(RUN)}&rollout=${house.rollout}`;
const everything = () =>
  Promise.all(
    ['runs', 'annotations', 'shares', 'views', 'keys', 'exports', 'members', `sessions/${house.sid}`]
      .map((name) => `/v1/${name}`)
      .concat(`${house.env}/task-sets`)
      .map(async (url) => [url, (await server.request('GET', `${url}?${of()}`)).body]),
  );

beforeAll(async () => {
  [server, upstream] = await Promise.all([startServer(), serve(textEnvironments)]);
  stranger = (await createCaller(server, 'strangers')).headers;
  house = await furnish(server, upstream.url);
  before = await everything();
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

/** The answer, with the names that were asked for taken out. */
async function ask(route: Route, values: Record<string, string>, sid: string, headers: Record<string, string> = {}) {
  const body = bodyOf(route);
  const answer = await server.request(route.method, urlOf(route, values, demandedOf(route)), {
    ...(body && { body }),
    headers: { ...sessionHeaders(server, sid, values['name']), ...headers },
  });
  const asked = [sid, ...Object.values(values).filter((value) => value.length > 3)];
  return { status: answer.status, body: asked.reduce((text, value) => text.replaceAll(value, '*'), JSON.stringify(answer.body)) };
}

/** A stream that does not end, of another kind of export or environment, made elsewhere. */
const UNREAD = /\/events$|\/{id}\/file$|^\/mcp\/|^\/v1\/github\/|\/objects\/|^\/openenv\/.*\/(container|state)/;

describe('the names that are asked for', () => {
  const read = routes.filter(({ method, route, names }) => method === 'GET' && names.length > 0 && !UNREAD.test(route));
  test.each(read)('are known to us: $method $route', async (route) => {
    expect(await ask(route, idsOf(house, route), house.sid)).toMatchObject({ status: 200 });
  });
});

describe('what another organisation is told of our names', () => {
  const named = routes.filter(({ route, names }) => names.length > 0 || !route.startsWith('/v1/'));
  test.each(named)('$method $route', async (route) => {
    const values = idsOf(house, route);
    for (const name of route.names) expect(values, `what stands for {${name}}`).toHaveProperty(name);
    const other = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, PLAIN.has(name) ? value : unlike(value)]));
    const theirs = await ask(route, values, house.sid, stranger);
    expect(theirs).toEqual(await ask(route, other, randomUUID(), stranger));
    expect(theirs.body).not.toContain(RUN);
  });
});

test('lists of another organisation have nothing of ours', async () => {
  const names = new Set(
    Object.values(house.ids).flatMap((values) =>
      Object.entries(values).flatMap(([name, value]) => (PLAIN.has(name) || name === 'owner' || value.length < 4 ? [] : [value])),
    ),
  );
  for (const { route } of routes.filter((each) => each.method === 'GET' && each.names.length === 0)) {
    const { body } = await server.request('GET', `${route}?q=fox&${of()}`, { headers: stranger });
    const text = JSON.stringify(body);
    for (const name of names) expect([route, text.includes(name)]).toEqual([route, false]);
  }
});

test('after all of that everything is as it was', async () => {
  const unsigned = (all: unknown) => JSON.parse(JSON.stringify(all).replaceAll(/\?method=[^"]*/g, '')) as unknown;
  expect(unsigned(await everything())).toEqual(unsigned(before));
});
