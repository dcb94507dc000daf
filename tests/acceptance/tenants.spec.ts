import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import {
  ALIKE,
  allRoutes,
  bodyOf,
  called,
  isAbsent,
  isOfOneSession,
  isOfSessionPlane,
  KEYLESS,
  OWN,
  PUBLIC,
  type Route,
  scopeOf,
  UNSCOPED,
  urlOf,
} from './tenants.routes.ts';
import { asked, type Belongings, settle, type Tenants } from './tenants.world.ts';

/** Every route × another tenant's key, a revoked key, no key, a key without the scope; black box, on the built service. */
let palestra: Palestra;
let tenants: Tenants;
let first: Belongings;
let documented: Route[];
let routes: Route[];

interface Document {
  paths: Record<string, object>;
}
const routesOf = ({ paths }: Document): Route[] =>
  Object.entries(paths).flatMap(([url, methods]) => Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path: url })));

beforeAll(async () => {
  palestra = await startPalestra();
  tenants = await settle(palestra);
  first = tenants.first;
  documented = routesOf(await asked(palestra, 'GET', '/openapi.json'));
  routes = allRoutes(documented);
});
afterAll(async () => {
  await tenants?.close();
  await palestra?.stop();
});

interface Answer {
  status: number;
  code: string | undefined;
  text: string;
  /** Names of what of the first tenant's stands in it without having been said. */
  leaks: string[];
}

/** A request of the session plane that names no deployment gets that of the first tenant. An event stream is read for `readMs`. */
async function ask(route: Route, headers: Record<string, string>, url = urlOf(route, first), readMs = 1_000): Promise<Answer> {
  const body = bodyOf(route, first);
  const request = {
    method: route.method,
    headers: {
      ...(isOfSessionPlane(route) ? { 'x-session-id': first.sid, 'x-deployment': `${first.owner}/${first.name}` } : {}),
      ...(route.path.startsWith('/mcp/') ? { 'mcp-session-id': first.sid, accept: 'application/json, text/event-stream' } : {}),
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body && JSON.stringify(body),
  };
  const answer = await fetch(palestra.url + url, { ...request, redirect: 'manual' });
  const text = await readFor(answer, readMs);
  const said = url + JSON.stringify(request);
  const heard = text + JSON.stringify([...answer.headers]);
  const leaks = Object.entries(first.marks).flatMap(([name, mark]) => (heard.includes(mark) && !said.includes(mark) ? [name] : []));
  return { status: answer.status, code: /"code":"(\w+)"/.exec(text)?.[1], text, leaks };
}

async function readFor(answer: Response, ms: number): Promise<string> {
  // What is no stream has an end. It is read to it, also on a machine that pauses.
  if (answer.headers.get('content-type')?.includes('text/event-stream') !== true) return answer.text();
  const reader = answer.body?.getReader();
  if (!reader) return '';
  const decoder = new TextDecoder();
  let text = '';
  const timer = setTimeout(() => void reader.cancel(), ms);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  clearTimeout(timer);
  return text;
}

/** `judge` says whether the answer is as due. All that is wrong, so that one run names every route. */
async function problemsOf(
  some: Route[],
  headersOf: (route: Route) => Record<string, string>,
  judge: (answer: Answer, name: string, route: Route) => boolean,
): Promise<string[]> {
  const problems: string[] = [];
  for (const route of some) {
    const answer = await ask(route, headersOf(route));
    const problem = answer.leaks.length > 0 ? `leaks ${answer.leaks.join(', ')}` : 'answers otherwise';
    if (answer.leaks.length > 0 || !judge(answer, called(route), route))
      problems.push(`${called(route)} ${problem}: ${answer.status} ${answer.text.slice(0, 200)}`);
  }
  return problems;
}

const isRefusal = (status: number): boolean => status === 401 || status === 403 || status === 404;

describe('every route', () => {
  test('is tested: all routes of the committed document, and all entries of the lists exist', () => {
    const committed = routesOf(JSON.parse(readFileSync(path.resolve(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as Document);
    const known = new Set(routes.map(called));
    expect(committed.length).toBeGreaterThan(80);
    expect(committed.map(called).filter((name) => !known.has(name))).toEqual([]);
    expect(known.size).toBe(routes.length);
    expect([...Object.keys(PUBLIC), ...OWN, ...UNSCOPED, ...ALIKE].filter((name) => !known.has(name))).toEqual([]);
  });

  test('refuses requests without a key, unless it is public', async () => {
    const problems = await problemsOf(
      routes,
      () => ({}),
      ({ status, code }, name) => (name in PUBLIC ? status === PUBLIC[name] : status === 401 && code === 'unauthorized'),
    );
    expect(problems).toEqual([]);
  });

  test('refuses a revoked key, also where it needs no key', async () => {
    const problems = await problemsOf(
      routes.filter((route) => !KEYLESS.has(called(route))),
      () => ({ 'x-api-key': tenants.revokedKey }),
      ({ status, code }) => status === 401 && code === 'key_revoked',
    );
    expect(problems).toEqual([]);
  });

  test('refuses a key without its scope', async () => {
    const scoped = routes.filter((route) => scopeOf(route) !== null);
    const open = routes.filter((route) => !(called(route) in PUBLIC || UNSCOPED.has(called(route)) || scoped.includes(route)));
    expect(open).toEqual([]);
    const problems = await problemsOf(
      scoped,
      (route) => ({ 'x-api-key': tenants.without(scopeOf(route)!) }),
      ({ status, code }) => status === 403 && code === 'scope_missing',
    );
    expect(problems).toEqual([]);
  });

  test('does not reveal objects of another tenant', async () => {
    const problems = await problemsOf(
      routes,
      () => ({ 'x-api-key': tenants.foreignKey }),
      ({ status, code }, name, route) => {
        if (OWN.has(name)) return status === 200;
        if (isAbsent(route)) return status === 501 && code === 'not_available';
        return isRefusal(status) || ALIKE.has(name.replace(' /{owner}/{name}/', ' /{env}/'));
      },
    );
    expect(problems).toEqual([]);
  });

  test('does not find sessions of another tenant, for any environment in the request', async () => {
    const headers = { 'x-api-key': tenants.foreignKey, 'x-deployment': tenants.foreignEnvironment };
    // The foreign tenant may use the id for a session of its own: tests/security/session-ids.spec.ts.
    const opensItsOwn = (route: Route) => called(route) === 'POST /create';
    const plane = routes.filter((route) => isOfSessionPlane(route) && !route.path.startsWith('/{owner}/') && !opensItsOwn(route));
    expect(plane.filter(isOfOneSession).length).toBeGreaterThan(12);
    const problems = await problemsOf(
      plane,
      () => headers,
      ({ status }, name, route) => isRefusal(status) || ALIKE.has(name) || (!isOfOneSession(route) && status === 200),
    );
    expect(problems).toEqual([]);
  });

  test.each([...ALIKE])('%s: a session of another tenant looks like a missing one', async (name) => {
    const [method, url] = name.split(' ') as [string, string];
    const answerOf = async (sid: string) => {
      const headers = { 'x-api-key': tenants.foreignKey, 'x-deployment': tenants.foreignEnvironment, 'x-session-id': sid };
      const { status, text } = await ask({ method, path: url }, headers);
      return { status, text: text.replaceAll(sid, 'the SID') };
    };
    expect(await answerOf(first.sid)).toEqual(await answerOf(randomUUID()));
  });
});

describe('beside the routes', () => {
  test.each([
    '/v1/sessions?environment={owner}/{name}',
    '/v1/sessions?key_id={keyId}',
    '/v1/sessions?forked_from={sid}',
    '/v1/slots?environment={owner}/{name}',
    '/v1/slots?environment=other/shared',
    '/v1/runs?search=run-canary-',
    '/v1/environments?owner={owner}&limit=100',
    '/v1/environments?search=private-',
    '/v1/stream?run={runId}',
  ])('%s finds nothing for another', async (template) => {
    const { marks: _, ...values } = first;
    const url = template.replaceAll(/\{(\w+)\}/g, (_match, name: keyof typeof values) => values[name]);
    const { status, leaks } = await ask({ method: 'GET', path: '/v1/runs' }, { 'x-api-key': tenants.foreignKey }, url);
    expect({ leaks, answers: status === 200 || isRefusal(status) }).toEqual({ leaks: [], answers: true });
  });

  test('the stream of runs sends each tenant its own runs only', async () => {
    const aborted = new AbortController();
    const listen = async (key: string) => {
      const answer = await fetch(`${palestra.url}/v1/stream`, { headers: { 'x-api-key': key }, signal: aborted.signal });
      expect(answer.status).toBe(200);
      const heard = { text: '' };
      const read = async () => {
        for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) heard.text += piece;
      };
      // Until it is aborted.
      read().catch(() => {});
      return heard;
    };
    const [own, others] = await Promise.all([listen(palestra.apiKey), listen(tenants.foreignKey)]);
    const event = { eventType: 'rollout', eventId: randomUUID(), timestamp: Date.now(), runName: `run-${first.canary}` };
    await asked(palestra, 'POST', '/v1/rollouts', { body: { events: [event] } });
    await expect.poll(() => own.text, { timeout: 40_000 }).toContain(first.runId);
    // What comes after it is heard by the other tenant: what it was told before is complete.
    const later = { ...event, eventId: randomUUID(), runName: 'news of the other' };
    const answer = await fetch(`${palestra.url}/v1/rollouts`, {
      method: 'POST',
      headers: { 'x-api-key': tenants.foreignKey, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [later] }),
    });
    expect(answer.status).toBe(200);
    await expect.poll(() => others.text, { timeout: 40_000 }).toContain('event: run');
    aborted.abort();
    expect(others.text).not.toContain(first.runId);
  });

  test('a stored file has only a signed URL', async () => {
    const url = `/blobs/environments/${first.environmentId}/${first.file}`;
    for (const key of [palestra.apiKey, tenants.foreignKey]) {
      const answer = await ask({ method: 'GET', path: '/v1/files' }, { 'x-api-key': key }, url);
      expect(answer).toMatchObject({ status: 403, code: 'url_expired', leaks: [] });
    }
  });
});

describe('afterwards', () => {
  test('nothing has changed', async () => {
    const get = (url: string) => asked(palestra, 'GET', url);
    expect(await get(`/v1/sessions/${first.sid}`)).toMatchObject({ state: 'ready', live: true });
    expect((await get(`/v1/sessions/${first.sid}/calls`)).calls).toHaveLength(1);
    expect((await get(`/v1/rollouts/${first.rolloutId}`)).messages).toHaveLength(1);
    expect((await get('/v1/keys')).keys.find(({ id }: { id: string }) => id === first.keyId).revoked_at).toBeNull();
    expect((await get(`/v1/files/${first.environmentId}`)).files).toEqual([{ path: first.file, size: first.canary.length }]);
    expect(await get(`/v1/environments/${first.owner}/${first.name}`)).toMatchObject({ is_private: true, description: first.canary });
    expect(JSON.stringify(await get('/v1/environments'))).not.toContain('squatter');
  });

  test('the owner sees every searched mark, so the search works', async () => {
    const shown = await Promise.all(
      [
        '/v1/me',
        '/v1/keys',
        '/v1/runs',
        '/v1/sessions?limit=200',
        '/v1/environments',
        `/v1/exports/${first.exportId}`,
        '/v1/review-queues',
        `/v1/deploys/${first.deployId}`,
      ]
        .concat(`/v1/sessions/${first.sid}/calls`, `/v1/runs/${first.runId}/rollouts`, `/v1/files/${first.environmentId}`)
        .map(async (url) => JSON.stringify(await asked(palestra, 'GET', url))),
    );
    const { apiKey: _, ...marks } = first.marks;
    for (const [name, mark] of Object.entries(marks)) expect(shown.join('\n').includes(mark), name).toBe(true);
    const { status, text } = await ask({ method: 'GET', path: '/prompt' }, { 'x-api-key': palestra.apiKey });
    expect({ status, tells: text.includes(first.canary) }).toEqual({ status: 200, tells: true });
  });
});
