import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

/** Pages of other origins: which ones browsers let read answers, and by which host names the service knows itself. */
const PAGE = 'https://tools.example';
let server: TestServer;
beforeAll(async () => {
  server = await startServer({ allowedOrigins: [PAGE], anonymous: true, publicUrl: 'https://palestra.example' });
});
afterAll(() => server?.close());

const corsOf = (headers: Headers) => [...headers].filter(([name]) => name.startsWith('access-control-'));
const preflight = { 'x-api-key': '', 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' };

describe('an allowed origin', () => {
  test('passes the preflight of every kind of request, without cookies', async () => {
    for (const path of ['/v1/rollouts', '/create_session', '/echo/call', '/v1/sessions/x']) {
      const { status, headers } = await server.request('OPTIONS', path, { headers: { ...preflight, origin: PAGE } });
      expect([path, status, Object.fromEntries(corsOf(headers))]).toEqual([
        path,
        204,
        {
          'access-control-allow-origin': PAGE,
          'access-control-expose-headers': '*',
          'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
          'access-control-allow-headers': '*, Authorization',
          'access-control-max-age': '600',
        },
      ]);
      expect(headers.get('vary')).toBe('Origin');
    }
  });

  test.each([
    ['an answer', 'GET', '/v1/me', 200],
    ['an error', 'GET', '/v1/runs/nothing', 404],
    ['an unknown route', 'GET', '/v1/nothing', 404],
    ['an event stream', 'POST', '/create_session', 200],
  ])('%s is readable', async (_what, method, path, status) => {
    const answer = await server.request(method, path, { headers: { origin: PAGE, 'x-deployment': 'none/none' } });
    expect([answer.status === status || path === '/create_session', answer.headers.get('access-control-allow-origin')]).toEqual([
      true,
      PAGE,
    ]);
  });

  test('needs a key, also where programs need none', async () => {
    const answer = await server.request('GET', '/v1/me', { headers: { origin: PAGE, 'x-api-key': '' } });
    expect(answer.status).toBe(403);
  });
});

test.each(['https://evil.example', 'null', 'https://tools.example.evil.example', 'http://tools.example', 'https://tools.example:444'])(
  'the origin %s gets no header that allows it anything',
  async (origin) => {
    const asked = await server.request('OPTIONS', '/v1/rollouts', { headers: { ...preflight, origin } });
    expect(asked.status).toBeGreaterThanOrEqual(400);
    expect(corsOf(asked.headers)).toEqual([]);
    expect(corsOf((await server.request('GET', '/v1/me', { headers: { origin } })).headers)).toEqual([]);
  },
);

test('without the setting no origin is allowed', async () => {
  const plain = await startServer();
  const { headers } = await plain.request('GET', '/v1/me', { headers: { origin: PAGE } });
  expect(corsOf(headers)).toEqual([]);
  await plain.close();
});

/** fetch sends no Host header of its own. */
const statusWithHost = (host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const url = new URL('/v1/me', server.url);
    httpRequest(url, { headers: { host } }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end();
  });

test.each([
  ['palestra.example', 200],
  ['api.palestra.example', 200],
  ['sessions.palestra.example:8443', 200],
  ['api.localhost:8080', 200],
  ['sessions.localhost', 200],
  ['api.evil.example', 403],
  ['evil.palestra.example', 403],
  ['api.palestra.example.evil.example', 403],
])('a program without a key that asks the host %s gets %i', async (host, status) => {
  expect(await statusWithHost(host)).toBe(status);
});
