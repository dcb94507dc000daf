import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';

/** How many sessions a key may have open, as its owner set it. */
let server: TestServer;
let upstream: RunningServer;

beforeAll(async () => {
  server = await startServer({ queue: { limit: 0, patienceMs: 5_000 } });
  const still = defineEnvironment({
    name: 'still',
    splits: ['train'],
    tasks: () => [{}],
    prompt: () => 'nothing',
    tools: { noop: tool({ description: 'Nothing', run: () => '' }) },
  });
  upstream = await serve([still]);
  await server.request('POST', '/v1/environments', {
    body: { name: 'still', description: '', source: { kind: 'remote', url: upstream.url } },
  });
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

test('a key with a limit of one session gets the next one when that has ended', async () => {
  const { body: key } = await server.request('POST', '/v1/keys', { body: { name: 'one at a time', max_sessions: 1 } });
  expect(key).toMatchObject({ max_sessions: 1 });
  const headers = { 'x-api-key': key.key };
  const open = () =>
    server.request('POST', '/v1/sessions', { headers, body: { environment: `${server.orgName}/still`, split: 'train', index: 0 } });
  const first = await open();
  expect(first.status).toBe(200);
  const refused = await open();
  expect(refused).toMatchObject({ status: 429, body: { code: 'capacity_exhausted' } });
  expect(refused.body.detail).toContain('this API key may have 1 sessions open');
  expect(refused.headers.get('retry-after')).toBe('10');
  expect(
    (await server.request('POST', '/v1/sessions', { body: { environment: `${server.orgName}/still`, split: 'train', index: 0 } })).status,
  ).toBe(200);
  expect((await server.request('DELETE', `/v1/sessions/${first.body.sid}`, { headers })).status).toBe(200);
  expect((await open()).status).toBe(200);
});
