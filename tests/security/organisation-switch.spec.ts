import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { seeded, upload } from '../integration/runs/run-reads.world.ts';
import { signIn } from '../support/organisation.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** A browser switches only between organisations of a user who signed it in themself. */

let server: TestServer;
let local: string;
beforeAll(async () => {
  server = await startServer();
  await upload(server, 'of local', seeded('of local', { steps: 1, tasks: 1, n: 1 }));
  local = await signIn(server.signInUrl);
});
afterAll(() => server.close());

const ask = (cookie: string, path: string, { as, method = 'GET', body }: { as?: string; method?: string; body?: unknown } = {}) =>
  server.request(method, path, {
    headers: {
      'x-api-key': '',
      cookie,
      'sec-fetch-site': 'same-origin',
      ...(as !== undefined && { 'x-palestra-organisation': encodeURIComponent(as) }),
    },
    ...(body !== undefined && { body }),
  });
const create = async (cookie: string, name: string) => (await ask(cookie, '/v1/organisations', { method: 'POST', body: { name } })).body;

test('the browser of a user reads each of their organisations, by the page that asks', async () => {
  await create(local, 'empty-team');
  expect((await ask(local, '/v1/me')).body).toMatchObject({
    org: { name: 'local' },
    organisations: [{ name: 'empty-team' }, { name: 'local' }],
  });
  expect((await ask(local, '/v1/me', { as: 'empty-team' })).body.org.name).toBe('empty-team');
  expect((await ask(local, '/v1/runs', { as: 'local' })).body.total).toBe(1);
  expect((await ask(local, '/v1/runs', { as: 'empty-team' })).body).toMatchObject({ runs: [], total: 0 });
  // Streams and images send the cookie of the page in front.
  expect((await ask(`${local}; palestra_organisation=empty-team`, '/v1/runs')).body.total).toBe(0);
  expect((await ask(`${local}; palestra_organisation=empty-team`, '/v1/runs', { as: 'local' })).body.total).toBe(1);
});

test('an organisation of others does not exist for the browser', async () => {
  const { body: made } = await server.request('POST', '/v1/organisations', { body: { name: 'strangers' } });
  const { body: added } = await ask(await signIn(made.sign_in_url), '/v1/members', { method: 'POST', body: { name: 'stranger' } });
  const stranger = await signIn(added.sign_in_url);
  for (const as of ['local', 'no-such-team', 'LOCAL', '', '%', "'; DROP TABLE runs", 'x'.repeat(5_000)])
    expect([as.slice(0, 20), await ask(stranger, '/v1/runs', { as })]).toMatchObject([
      as.slice(0, 20),
      { status: 404, body: { code: 'organisation_not_found' } },
    ]);
  // A cookie is a preference: it opens nothing and breaks nothing.
  expect((await ask(`${stranger}; palestra_organisation=local`, '/v1/me')).body.org.name).toBe('strangers');
});

test("a link from another owner does not open the user's other organisations", async () => {
  // "me" owns local and a private organisation; a second owner of local creates a link for "me".
  await create(local, 'private-team');
  const { body: me } = await ask(local, '/v1/me');
  const { body: second } = await ask(local, '/v1/members', { method: 'POST', body: { name: 'second-owner', role: 'owner' } });
  const owner = await signIn(second.sign_in_url);
  const { body: link } = await ask(owner, `/v1/members/${me.user.id}/sign-in-link`, { method: 'POST' });
  const posing = await signIn(link.sign_in_url);
  expect((await ask(posing, '/v1/me')).body).toMatchObject({
    user: { name: 'me' },
    org: { name: 'local' },
    organisations: [{ name: 'local' }],
  });
  expect(await ask(posing, '/v1/me', { as: 'private-team' })).toMatchObject({ status: 404, body: { code: 'organisation_not_found' } });
  // Nor does a link that this browser creates for "me".
  const { body: again } = await ask(posing, `/v1/members/${me.user.id}/sign-in-link`, { method: 'POST' });
  expect((await ask(await signIn(again.sign_in_url), '/v1/me', { as: 'private-team' })).status).toBe(404);
});

test('a key belongs to one organisation, also in a browser', async () => {
  const { body: key } = await ask(local, '/v1/keys', { method: 'POST', body: { name: 'k', scopes: ['rollouts', 'keys'] } });
  const login = await fetch(`${server.url}/v1/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: key.key }),
  });
  const cookie = login.headers.get('set-cookie')!.split(';')[0]!;
  expect((await ask(cookie, '/v1/me')).body.organisations).toMatchObject([{ name: 'local' }]);
  expect((await ask(cookie, '/v1/runs', { as: 'empty-team' })).status).toBe(404);
  // A link that a key creates is no better than the key.
  const { body: me } = await ask(cookie, '/v1/me');
  const { body: link } = await server.request('POST', `/v1/members/${me.user.id}/sign-in-link`, { headers: { 'x-api-key': key.key } });
  expect((await ask(await signIn(link.sign_in_url), '/v1/runs', { as: 'empty-team' })).status).toBe(404);
});

test('who left an organisation cannot switch to it any more', async () => {
  await create(local, 'left-team');
  const { body: me } = await ask(local, '/v1/me');
  const { body: other } = await ask(local, '/v1/members', { as: 'left-team', method: 'POST', body: { name: 'left-owner', role: 'owner' } });
  expect((await ask(local, '/v1/runs', { as: 'left-team' })).status).toBe(200);
  const owner = await signIn(other.sign_in_url);
  expect((await ask(owner, `/v1/members/${me.user.id}`, { method: 'DELETE' })).status).toBe(200);
  expect((await ask(local, '/v1/runs', { as: 'left-team' })).status).toBe(404);
  expect((await ask(local, '/v1/runs', { as: 'local' })).status).toBe(200);
});

test('what follows an organisation ends when its user leaves it, and what follows another one goes on', async () => {
  await create(local, 'followed-team');
  const { body: me } = await ask(local, '/v1/me');
  const { body: other } = await ask(local, '/v1/members', {
    as: 'followed-team',
    method: 'POST',
    body: { name: 'followed', role: 'owner' },
  });
  const owner = await signIn(other.sign_in_url);
  const cookieOf = (name: string) => `${local}; palestra_organisation=${name}`;
  const streamOf = async (name: string) => {
    const answer = await fetch(`${server.url}/v1/stream`, { headers: { cookie: cookieOf(name) } });
    expect(answer.status).toBe(200);
    const state = { ended: false };
    void (async () => {
      for await (const _piece of answer.body!);
    })()
      .catch(() => {})
      .finally(() => (state.ended = true));
    return state;
  };
  const socketOf = async (name: string) => {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/text-sessions/ws`, {
      headers: { cookie: cookieOf(name), origin: server.url },
    });
    const state = { code: null as number | null };
    socket.on('close', (code) => (state.code = code));
    await once(socket, 'open');
    return state;
  };
  const [stream, otherStream] = [await streamOf('followed-team'), await streamOf('local')];
  const [socket, otherSocket] = [await socketOf('followed-team'), await socketOf('local')];
  expect((await ask(owner, `/v1/members/${me.user.id}`, { method: 'DELETE' })).status).toBe(200);
  await expect.poll(() => [stream.ended, socket.code], { timeout: 20_000, interval: 250 }).toEqual([true, 1008]);
  expect([otherStream.ended, otherSocket.code]).toEqual([false, null]);
});
