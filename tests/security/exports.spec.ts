import { defineEnvironment, type RunningServer, serve, tool } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCaller } from '../support/callers.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** Finding M4 of the audit: exports of one organisation keep no other one from exporting, and end when somebody says so. */

let server: TestServer;
let upstream: RunningServer;
/** Lets the tasks of the slow environment go on. */
let go = () => {};
const gate = new Promise<void>((resolve) => (go = resolve));

beforeAll(async () => {
  const slow = defineEnvironment({
    name: 'slow',
    splits: ['train'],
    tasks: () => [{}, {}],
    setup: () => gate,
    prompt: () => 'wait',
    tools: { none: tool({ description: '', run: () => '' }) },
  } as never);
  upstream = await serve([slow]);
  server = await sharedServer();
  const source = { kind: 'remote', url: upstream.url };
  await server.request('POST', '/v1/environments', { body: { name: 'slow', isPrivate: true, source } });
});
afterAll(async () => {
  go();
  await upstream?.close();
  await server?.close();
});

const slowExport = () => server.request('POST', '/v1/exports/tasks', { body: { environments: [`${server.orgName}/slow`] } });

test('M4: endless exports use the limit of their organisation only, and can be cancelled', async () => {
  const mine = [await slowExport(), await slowExport()];
  for (const one of mine) expect(one).toMatchObject({ status: 200, body: { state: 'running' } });
  expect(await slowExport()).toMatchObject({ status: 429, body: { code: 'capacity_exhausted' } });

  const { headers } = await createCaller(server, 'others');
  const body = { environments: ['palestra/echo'], max_tasks: 2 };
  const other = await server.request('POST', '/v1/exports/tasks', { headers, body });
  expect(other.status).toBe(200);
  await expect.poll(async () => (await server.request('GET', `/v1/exports/${other.body.id}`, { headers })).body.state).toBe('complete');

  const [first, second] = mine.map((one) => `/v1/exports/${one.body.id}`) as [string, string];
  expect(await server.request('DELETE', first, { headers })).toMatchObject({ status: 404, body: { code: 'export_not_found' } });
  expect(await server.request('DELETE', first)).toMatchObject({ status: 200, body: { deleted: true } });
  expect(await server.request('GET', first)).toMatchObject({ status: 404, body: { code: 'export_not_found' } });
  // Its slot is free.
  let third = '';
  await expect
    .poll(async () => {
      const { status, body } = await slowExport();
      third = `/v1/exports/${body.id}`;
      return status;
    })
    .toBe(200);
  for (const path of [second, third]) expect((await server.request('DELETE', path)).status).toBe(200);
  // A finished one goes with its file.
  expect(await server.request('DELETE', `/v1/exports/${other.body.id}`, { headers })).toMatchObject({ status: 200 });
  expect((await server.request('GET', `/v1/exports/${other.body.id}/file`, { headers })).status).toBe(404);
});
