import { once } from 'node:events';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** What an owner changes while sessions live, wait and are watched. */
let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server?.close());

/** A hosted environment of that name, and which of its episodes stand. */
async function host(name: string, sessions: object = {}) {
  const standing = new Set<string>();
  const still = defineEnvironment<{ id: number }, { sid: string }>({
    name,
    splits: ['train'],
    tasks: () => [{ id: 0 }],
    create: ({ sid }) => {
      standing.add(sid);
      return { sid };
    },
    teardown: ({ sid }) => void standing.delete(sid),
    prompt: () => 'Wait.',
    tools: { noop: tool({ description: 'Nothing', run: () => 'done' }) },
  });
  const upstream = await serve([still]);
  onTestFinished(() => upstream.close());
  const environment = `${server.orgName}/${name}`;
  await server.request('POST', '/v1/environments', { body: { name, source: { kind: 'remote', url: upstream.url } } });
  const change = async (to: object) =>
    expect(await server.request('PUT', `/v1/environments/${environment}/details`, { body: { sessions: to } })).toMatchObject({
      status: 200,
    });
  await change(sessions);
  const open = () => server.request('POST', '/v1/sessions', { body: { environment, split: 'train', index: 0 } });
  const slots = async () => (await server.request('GET', `/v1/slots?environment=${environment}`)).body.environments[0];
  return { environment, standing, change, open, slots };
}

test('added capacity goes to waiting sessions before new ones', async () => {
  const { change, open, slots } = await host('roomy', { capacity: 1 });
  expect(await open()).toMatchObject({ status: 200 });
  const waiting = open();
  await expect.poll(async () => (await slots()).waiting).toBe(1);
  await change({ capacity: 2 });
  expect(await waiting).toMatchObject({ status: 200 });
  const late = open();
  await expect.poll(slots).toMatchObject({ used: 2, waiting: 1 });
  await change({});
  expect(await late).toMatchObject({ status: 200 });
});

test('a raised quota also admits waiting sessions', async () => {
  const { open, slots } = await host('quoted');
  const quota = (most: number | null) => server.request('PATCH', '/v1/organisation', { body: { max_sessions: most } });
  onTestFinished(async () => void (await quota(null)));
  const { used } = await slots();
  expect(used).toBe(0);
  const held = (await server.request('GET', '/v1/slots')).body.environments.reduce(
    (sum: number, one: { used: number }) => sum + one.used,
    0,
  );
  await quota(held + 1);
  expect(await open()).toMatchObject({ status: 200 });
  const waiting = open();
  await expect.poll(async () => (await slots()).waiting).toBe(1);
  await quota(held + 2);
  expect(await waiting).toMatchObject({ status: 200 });
});

test('a deleted environment ends its sessions, also waiting ones, and frees their resources', { timeout: 60_000 }, async () => {
  const { environment, standing, open, slots } = await host('doomed', { capacity: 1 });
  const { sid } = (await open()).body as { sid: string };
  const waiting = open();
  await expect.poll(async () => (await slots()).waiting).toBe(1);
  expect([...standing]).toEqual([sid]);
  expect(await server.request('DELETE', `/v1/environments/${environment}`)).toMatchObject({ status: 200 });
  const gone = { code: 'session_lost', message: 'Session lost: the environment that it ran on was deleted.' };
  expect(await waiting).toMatchObject({ status: 410, body: gone });
  await expect.poll(() => standing.size, { timeout: 20_000 }).toBe(0);
  const headers = { 'x-session-id': sid };
  expect(await server.request('POST', '/ping', { headers })).toMatchObject({ status: 410, body: gone });
  expect((await server.request('GET', `/v1/sessions/${sid}`)).body).toMatchObject({ state: 'lost', failure_class: 'infrastructure' });
});

test('a revoked key loses its sockets and streams', { timeout: 60_000 }, async () => {
  const { environment, standing } = await host('watched');
  const { body: key } = await server.request('POST', '/v1/keys', { body: { name: 'soon gone', scopes: ['sessions'] } });
  const connect = async (path: string, apiKey: string) => {
    const socket = new WebSocket(server.url.replace('http', 'ws') + path, { headers: { 'x-api-key': apiKey } });
    onTestFinished(() => socket.terminate());
    const closed = once(socket, 'close').then(([code, reason]) => [code, String(reason)]);
    await once(socket, 'open');
    const ask = async (message: object) => {
      socket.send(JSON.stringify(message));
      return JSON.parse(String((await once(socket, 'message'))[0])) as { result: { id: string } };
    };
    return { closed, ask };
  };
  const text = await connect('/v1/text-sessions/ws', key.key);
  const { result } = await text.ask({ id: '1', op: 'init', environment, split: 'train', index: 0 });
  const openenv = await connect(`/openenv/${environment}/ws`, key.key);
  await openenv.ask({ type: 'reset', data: {} });
  const kept = await connect(`/openenv/${environment}/ws`, server.apiKey);
  await kept.ask({ type: 'reset', data: {} });
  expect(standing.size).toBe(3);
  const events = await fetch(`${server.url}/v1/sessions/${result.id}/events`, { headers: { 'x-api-key': key.key } });
  const streamed = events.text().then(
    () => 'ended',
    () => 'cut',
  );

  expect(await server.request('DELETE', `/v1/keys/${key.id}`)).toMatchObject({ status: 200 });
  for (const { closed } of [text, openenv]) expect(await closed).toEqual([1008, expect.stringContaining('This API key was revoked.')]);
  // With the socket goes its episode; a text session lives on for another key.
  await expect.poll(() => standing.size).toBe(2);
  expect(await kept.ask({ type: 'state' })).toMatchObject({ type: 'state' });
  expect(await streamed).toBe('cut');
});

test('a browser that signs out loses only the sockets that it opened', { timeout: 60_000 }, async () => {
  const { environment, standing } = await host('browsed');
  const signIn = async () => {
    const answer = await server.request('POST', '/v1/login', { body: { key: server.apiKey } });
    return { cookie: answer.headers.get('set-cookie')!.split(';')[0]!, 'x-api-key': '', 'sec-fetch-site': 'same-origin' };
  };
  const [leaves, stays] = [await signIn(), await signIn()];
  const connect = async ({ cookie }: { cookie: string }) => {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/openenv/${environment}/ws`, {
      headers: { cookie, origin: server.url },
    });
    onTestFinished(() => socket.terminate());
    await once(socket, 'open');
    const ask = async (message: object) => {
      socket.send(JSON.stringify(message));
      return JSON.parse(String((await once(socket, 'message'))[0])) as object;
    };
    await ask({ type: 'reset', data: {} });
    return { closed: once(socket, 'close').then(([code, reason]) => [code, String(reason)]), ask };
  };
  const [gone, kept] = [await connect(leaves), await connect(stays)];
  expect(standing.size).toBe(2);
  expect(await server.request('POST', '/v1/logout', { headers: leaves })).toMatchObject({ status: 200 });
  expect(await gone.closed).toEqual([1008, 'This browser was signed out.']);
  await expect.poll(() => standing.size).toBe(1);
  expect(await kept.ask({ type: 'state' })).toMatchObject({ type: 'state' });
});
