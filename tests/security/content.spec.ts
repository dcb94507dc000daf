import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ScriptedServer, startScripted } from '../../libs/openenv/src/client/scripted-server.fixture.ts';
import { signIn } from '../support/organisation.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** Finding C1 of the audit: what an environment's server says is never a page of our origin. L2: every answer has safe headers. */

const PAGE = '<!doctype html><script>fetch("/v1/keys")</script>';
/** What the hostile server answers these paths with. */
let contentType = 'text/html';
const PATHS = ['/state', '/list_environments'];
let server: TestServer;
let hostile: ScriptedServer;
let address = '';

beforeAll(async () => {
  server = await sharedServer();
  hostile = await startScripted({
    generation: 'C',
    onGet(path, response) {
      if (!PATHS.includes(path)) return false;
      response.writeHead(200, { 'content-type': contentType }).end(PAGE);
      return true;
    },
  });
  const source = { kind: 'openenv', url: hostile.url };
  const { status } = await server.request('POST', '/v1/environments', { body: { name: 'hostile', isPrivate: false, source } });
  if (status >= 400) throw new Error('the hostile environment was not registered');
  address = `/openenv/${server.orgName}/hostile`;
});
afterAll(() => hostile?.stop());

test.each(['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/xml', 'application/json, text/html', 'application/jsonx', ''])(
  'a relayed answer of type %j is refused or inert',
  async (type) => {
    contentType = type;
    for (const path of PATHS) {
      const answer = await fetch(server.url + address + path, { headers: { 'x-api-key': server.apiKey } });
      if (answer.status < 400) expect(answer.headers.get('content-type'), path).toMatch(/^application\/json/);
      else expect(answer.headers.get('content-type'), path).toMatch(/^(application\/json|text\/plain)/);
      expect(answer.headers.get('content-security-policy'), path).toContain('sandbox');
      expect(answer.headers.get('x-content-type-options'), path).toBe('nosniff');
    }
  },
);

test('a browser that follows a link there is not signed in', async () => {
  const { body } = await server.request('POST', '/v1/members', { body: { name: `victim-${Date.now()}` } });
  const cookie = await signIn(body.sign_in_url);
  for (const destination of ['document', 'iframe', 'image', 'script', 'object']) {
    const answer = await fetch(`${server.url}${address}/state`, { headers: { cookie, 'sec-fetch-dest': destination } });
    expect(answer.status, destination).toBe(401);
  }
});

test.each([
  '/health',
  '/health/live',
  '/health/ready',
  '/v1/health',
  '/v1/me',
  '/v1/nothing',
  '/nothing/else/here',
  '/v1/stream',
  '/list_environments',
  '/metrics',
  '/docs',
  '/openapi.json',
])('L2: %s has safe headers', async (path) => {
  const controller = new AbortController();
  const answer = await fetch(server.url + path, { headers: { 'x-api-key': server.apiKey }, signal: controller.signal });
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(answer.headers.get('cache-control')).toMatch(/no-store|no-cache/);
  controller.abort();
});
