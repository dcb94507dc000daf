import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** The documentation site at /docs. Needs `npm run build`. */
const site = path.resolve(import.meta.dirname, '../../../apps/docs/dist');
const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
const read = (page: string): string => readFileSync(path.join(site, page), 'utf8');

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

/** A request whose path is sent as it is, without a key. */
const request = (url: string, method = 'GET', headers: Record<string, string> = {}) =>
  new Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: string }>((resolve, reject) => {
    const { hostname, port } = new URL(server.url);
    get({ hostname, port, path: url, method, headers }, (answer) => {
      let body = '';
      answer.on('data', (data: Buffer) => (body += data.toString()));
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, body }));
    }).on('error', reject);
  });

test.each(['/docs/../package.json', '/docs/%2e%2e/package.json', '/docs/..%2fpackage.json', '/docs/assets/../../package.json'])(
  '%s reads nothing outside of the site',
  async (url) => {
    const { status, body } = await request(url);
    expect([400, 403, 404]).toContain(status);
    expect(body).not.toContain('@palestra/docs');
  },
);

test.each(['/docs/nope', '/docs/assets/nope.js', '/docs/assets/', '/docs/adr'])('%s is the page for missing pages', async (url) => {
  const { status, headers, body } = await request(url);
  expect(status).toBe(404);
  expect(headers['content-type']).toBe('text/html; charset=utf-8');
  expect(body).toBe(read('404.html'));
});

test.each([
  ['/docs/', 'index.html'],
  ['/docs/operations', 'operations.html'],
  ['/docs/api/runs', 'api/runs.html'],
])('%s is %s, for everybody, with a validator', async (url, page) => {
  const { status, headers, body } = await request(url);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
  });
  expect(body).toBe(read(page));
  expect(await request(url, 'GET', { 'if-none-match': String(headers['etag']) })).toMatchObject({ status: 304, body: '' });
  const head = await request(url, 'HEAD');
  expect(head).toMatchObject({ status: 200, body: '' });
  expect(head.headers['content-length']).toBe(String(Buffer.byteLength(body)));
});

test('/docs leads to the site', async () => {
  expect(await request('/docs')).toMatchObject({ status: 302, headers: { location: '/docs/' } });
});

test('files with a hash in their name stay in caches', async () => {
  const script = /src="(\/docs\/assets\/app\.[^"]+\.js)"/.exec(read('index.html'))![1]!;
  const { status, headers } = await request(script);
  expect(status).toBe(200);
  expect(headers['content-type']).toMatch(/^(?:text|application)\/javascript/);
  expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
});

test.each(pages)('%s has no inline script or style that the policy refuses', async (page) => {
  const { headers } = await request(`/docs/${page}`);
  const policy = String(headers['content-security-policy']);
  expect(policy).not.toContain('unsafe');
  expect(policy).toContain("default-src 'none'");
  const inline = [...read(page).matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)].map(([, code]) => code!);
  for (const code of inline) expect(policy).toContain(`'sha256-${createHash('sha256').update(code).digest('base64')}'`);
  expect(read(page)).not.toMatch(/<[a-z][^<>]*\sstyle="|<style|<[a-z][^<>]*\son[a-z]+="/);
  // Nothing from other origins.
  expect(read(page)).not.toMatch(/<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?\/\//);
});

test('the OpenAPI document stays where it was', async () => {
  expect(await request('/openapi.json')).toMatchObject({ status: 200 });
  expect(read('api/runs.html')).toContain('href="/openapi.json"');
});
