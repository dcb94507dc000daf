import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';

/** Finding M8 of the audit: where no key is needed, a web page of another site is still refused, also by a name that it points here. */

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ anonymous: true });
});
afterAll(() => server?.close());

const ask = (headers: Record<string, string>) => server.request('GET', '/v1/me', { headers: { 'x-api-key': '', ...headers } });
const create = (headers: Record<string, string>) =>
  server.request('POST', '/create_session', { headers: { 'x-api-key': '', 'content-type': 'text/plain', ...headers } });

test('programs are served', async () => {
  expect(await ask({})).toMatchObject({ status: 200 });
  expect(await create({})).toMatchObject({ status: 200 });
});

test.each([
  [{ origin: 'https://evil.example' }],
  [{ origin: 'null' }],
  [{ origin: 'http://localhost:1' }],
  [{ 'sec-fetch-site': 'cross-site' }],
  [{ 'sec-fetch-site': 'same-site' }],
  [{ 'sec-fetch-site': 'cross-site', 'x-api-key': 'any' }],
] as Record<string, string>[][])('a page with %j is refused', async (headers) => {
  expect(await ask(headers!)).toMatchObject({ status: 403 });
  expect(await create(headers!)).toMatchObject({ status: 403 });
});
