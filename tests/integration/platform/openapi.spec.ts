import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

const FILE = path.resolve(import.meta.dirname, '../../../docs/openapi.json');

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

it('serves the document that is committed under docs/ (PALESTRA_WRITE_OPENAPI=1 rewrites it)', async () => {
  const { body } = await server.request('GET', '/openapi.json', { headers: { 'x-api-key': '' } });
  const text = `${JSON.stringify(body, null, 2)}\n`;
  if (process.env.PALESTRA_WRITE_OPENAPI === '1') await writeFile(FILE, text);
  expect(text).toBe(await readFile(FILE, 'utf8'));
});

it('describes every way to send a key', async () => {
  const { body } = await server.request('GET', '/openapi.json');
  const headers: Record<string, Record<string, string>> = {
    apiKey: { 'x-api-key': server.apiKey },
    bearer: { authorization: `Bearer ${server.apiKey}` },
    basic: { authorization: `Basic ${Buffer.from(`key:${server.apiKey}`).toString('base64')}` },
  };
  expect(Object.keys(body.components.securitySchemes)).toEqual(Object.keys(headers));
  expect(body.security).toEqual(Object.keys(headers).map((scheme) => ({ [scheme]: [] })));
  for (const sent of Object.values(headers))
    expect((await server.request('GET', '/v1/me', { headers: { 'x-api-key': '', ...sent } })).status).toBe(200);
});

it('names only components that exist, and each component is used', async () => {
  const { body } = await server.request('GET', '/openapi.json');
  const named = new Set([...JSON.stringify(body).matchAll(/"\$ref":"#\/components\/([^"]+)"/g)].map(([, name]) => name!));
  const there = ['schemas', 'responses'].flatMap((kind) => Object.keys(body.components[kind]).map((name) => `${kind}/${name}`));
  expect([...named].toSorted()).toEqual(there.toSorted());
});

it('describes the routes of every module and the responses of the router', async () => {
  const { body } = await server.request('GET', '/openapi.json');
  for (const route of [
    '/v1/rollouts',
    '/v1/runs/{id}',
    '/v1/keys',
    '/v1/environments',
    '/v1/files/upload-urls',
    '/create_session',
    '/{env}/call',
    '/v1/exports/tasks',
  ]) {
    expect(Object.keys(body.paths)).toContain(route);
  }
  for (const methods of Object.values<Record<string, { responses: object }>>(body.paths)) {
    for (const { responses } of Object.values(methods)) {
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['404', '405', '408', '429', '431', '500', '503']));
      // Work that goes on after the response is a 202.
      expect(Object.keys(responses).some((status) => status === '200' || status === '202')).toBe(true);
    }
  }
});
