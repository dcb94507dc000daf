import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { seeded, strangerOf, upload } from './run-reads.world.ts';

let server: TestServer;
const rollouts = seeded('shared', { steps: 1, tasks: 1, n: 2 });
const [shown, hidden] = rollouts.map(({ id }) => id) as [string, string];
beforeAll(async () => {
  server = await sharedServer();
  await upload(server, 'shared run', rollouts);
});
afterAll(() => server.close());

async function share(body: object = {}) {
  const { status, body: created } = await server.request('POST', '/v1/shares', { body: { rollout: shown, message: 2, ...body } });
  expect(status).toBe(200);
  return created as { id: string; url: string };
}
async function open(url: string) {
  const answer = await fetch(url, { redirect: 'manual' });
  const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0]!;
  const html = await answer.text();
  const read = (method: string, path: string, body?: unknown) =>
    server.request(method, path, {
      headers: { 'x-api-key': '', cookie, 'sec-fetch-site': 'same-origin' },
      ...(body !== undefined && { body }),
    });
  // `request` of the test server adds its key, unless the header is empty.
  return { answer, html, read };
}

it('a link shows task and reward in previews, and opens the message in a browser', async () => {
  const { url } = await share();
  const { answer, html } = await open(url);
  expect(answer.headers.get('content-type')).toContain('text/html');
  expect(html).toMatch(/<meta property="og:title" content="train 0: (reward|not scored)/);
  expect(html).toContain('acme/math');
  expect(html).toContain(`url=/rollout/${shown}#m-2`);
  expect(html).not.toContain('<script');
});

it('a link gives access to the whole rollout, and to nothing else', async () => {
  const { read } = await open((await share()).url);
  for (const path of ['', '/header', '/outline', '/messages', '/calls', '/messages/0/body'])
    expect([path, (await read('GET', `/v1/rollouts/${shown}${path}`)).status]).toEqual([path, 200]);
  expect(await read('GET', '/v1/shared')).toMatchObject({ status: 200, body: { kind: 'rollout', rollouts: [shown], message: 2 } });
  for (const path of [`/v1/rollouts/${hidden}/header`, '/v1/runs', '/v1/me', '/v1/shares', `/v1/diff?a=${shown}&b=${shown}`])
    expect([path, (await read('GET', path)).status]).toEqual([path, 401]);
  expect(await read('DELETE', `/v1/rollouts/${shown}`)).toMatchObject({ status: 401 });
  expect(await read('POST', '/v1/annotations', { rollout: shown, verdict: 'bad' })).toMatchObject({ status: 401 });
});

it('a link ends when it is deleted or expires', async () => {
  const { id, url } = await share();
  const { read } = await open(url);
  const { body: list } = await server.request('GET', `/v1/shares?rollout=${shown}`);
  expect(list.shares.map((one: { id: string }) => one.id)).toContain(id);
  expect(JSON.stringify(list)).not.toContain(url.split('/').at(-1));
  expect(await server.request('DELETE', `/v1/shares/${id}`)).toMatchObject({ status: 200 });
  expect(await read('GET', `/v1/rollouts/${shown}/header`)).toMatchObject({ status: 401 });
  expect(await read('GET', '/v1/shared')).toMatchObject({ status: 404, body: { code: 'share_not_found' } });

  const late = await share({ expires_in_days: 1 });
  await server.database.pool.query(`UPDATE share_links SET expires_at = now() - interval '1 second' WHERE id = $1`, [late.id]);
  expect((await open(late.url)).answer.status).toBe(404);
});

it('only the organisation of the rollout creates and deletes its links', async () => {
  const stranger = await strangerOf(server);
  expect(await server.request('POST', '/v1/shares', { headers: stranger, body: { rollout: shown } })).toMatchObject({
    status: 404,
    body: { code: 'rollout_not_found' },
  });
  expect(await server.request('DELETE', `/v1/shares/${(await share()).id}`, { headers: stranger })).toMatchObject({ status: 404 });
  expect(await server.request('POST', '/v1/shares', { body: { rollout: randomUUID() } })).toMatchObject({ status: 404 });
});

it('a link ends with its rollout, even when another one gets its id', async () => {
  const again = seeded('shared again', { steps: 1, tasks: 1, n: 1 });
  const id = again[0]!.id;
  await upload(server, 'shared run', again);
  const { url } = await share({ rollout: id });
  expect((await open(url)).answer.status).toBe(200);
  expect(await server.request('DELETE', `/v1/rollouts/${id}`)).toMatchObject({ status: 200 });
  const gone = async () => {
    const { answer, html } = await open(url);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(html).toContain('This link has ended');
  };
  await gone();
  expect((await server.request('GET', `/v1/shares?rollout=${id}`)).body.shares).toEqual([]);
  await upload(server, 'shared run', again);
  await gone();
});

it('a link has ended while the run of its rollout is being erased', async () => {
  const hiding = seeded('hidden', { steps: 1, tasks: 1, n: 1 });
  await upload(server, 'hidden run', hiding);
  const { url } = await share({ rollout: hiding[0]!.id });
  await server.database.pool.query(`UPDATE runs SET deleted_at = now() WHERE seq = (SELECT run_seq FROM rollout_heads WHERE id = $1)`, [
    hiding[0]!.id,
  ]);
  const { answer, html } = await open(url);
  expect(answer.status).toBe(404);
  expect(html).toContain('This link has ended');
});
