import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WAITING } from '../../../apps/api/src/environments/hosting/instances/instance.sql.ts';
import { echo } from '../../../apps/environments/src/echo/echo.environment.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { ask } from '../sessions/session-requests.ts';
import { clientOf, deploy, type Deployed, type HostingWorld, instancesOf, livingOf, query, startHosting } from './hosting.world.ts';

/** Sessions get places on instances, from two API processes at once. */
let world: HostingWorld;
let second: TestServer;
let clients: ReturnType<typeof clientOf>[];

beforeAll(async () => {
  world = await startHosting();
  world.start();
  const { config, apiKey } = world.server;
  second = await startServer({ databaseUrl: config.databaseUrl, dataDir: config.dataDir, apiKey, jobs: 'off', silenceTimeoutMs: 20_000 });
  clients = [clientOf(world), clientOf(world, second)];
});
afterAll(async () => {
  await second?.close();
  await world?.close();
});

const placed = async ({ versionId }: Deployed) =>
  query<{ instance_id: string; count: number }>(
    world,
    'SELECT instance_id, count(*)::int AS count FROM sessions WHERE version_id = $1 AND ended_at IS NULL GROUP BY 1',
    [versionId],
  );

test('sessions of two processes never exceed what instances take, and each gets its own place', async () => {
  const deployed = await deploy(world, 'shared', { concurrency: 4, max: 3, idle_s: 0 });
  let most = 0;
  let watching = true;
  const watched = (async () => {
    while (watching)
      for (const { instance_id: id, count } of await placed(deployed)) if (!/^0+-/.test(id ?? '0-')) most = Math.max(most, count);
  })();
  // Twice as many as there are places.
  const played = Array.from({ length: 24 }, async (_, index) => {
    const client = clients[index % 2]!;
    const sid = await client.open(deployed.name, index % 10);
    const counts = [await client.add(sid), await client.add(sid)].map((said) => said.split(':')[2]);
    await client.end(sid);
    return counts;
  });
  expect(await Promise.all(played)).toEqual(Array.from({ length: 24 }, () => ['1', '2']));
  watching = false;
  await watched;
  expect(most).toBe(4);
  expect(await instancesOf(world, deployed)).toHaveLength(3);
});

test('sessions keep to the oldest instances that have room for all, so that the others become idle', async () => {
  const deployed = await deploy(world, 'packed', { concurrency: 2, max: 4, idle_s: 0 });
  const [client] = clients;
  const sids = await Promise.all([0, 1, 2, 3, 4, 5].map((index) => client!.open(deployed.name, index)));
  await expect.poll(async () => (await livingOf(world, deployed)).map(({ state }) => state)).toEqual(['ready', 'ready', 'ready']);
  for (const sid of sids) await client!.end(sid);
  const [oldest] = await livingOf(world, deployed);
  const later = [await client!.open(deployed.name), await client!.open(deployed.name)];
  expect((await placed(deployed)).map(({ instance_id: id, count }) => [id, count])).toEqual([[oldest!.id, 2]]);
  await expect.poll(async () => (await livingOf(world, deployed)).map(({ id }) => id)).toEqual([oldest!.id]);
  for (const sid of later) await client!.end(sid);
});

test('a session that gets its place while instances are counted counts once', async () => {
  const one = await startHosting();
  onTestFinished(() => one.close());
  const deployed = await deploy(one, 'single', { concurrency: 1, max: 2 });
  const isWaiting = async () =>
    (await query(one, 'SELECT FROM sessions WHERE instance_id = $1 AND ended_at IS NULL', [WAITING])).length > 0;
  const { pool } = one.server.serviceDatabase;
  /** Reads the instances only when the session has its place. */
  const slow = new Proxy(pool, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'query') return value.bind(target) as unknown;
      return async (...statement: [{ name?: string }]) => {
        const isLate = statement[0].name === 'instances_living' && (await instancesOf(one, deployed)).length > 0;
        while (isLate && (await isWaiting())) await sleep(20);
        return Reflect.apply(value, target, statement) as unknown;
      };
    },
  });
  one.start(undefined, slow);
  const client = clientOf(one);
  const sid = await client.open(deployed.name);
  // Time for the pass that counted it.
  await sleep(1_000);
  expect(await instancesOf(one, deployed)).toHaveLength(1);
  await client.end(sid);
});

test('an episode that cannot be opened takes no place', async () => {
  const deployed = await deploy(world, 'picky', { concurrency: 1, max: 1, idle_s: 0 });
  await expect(clients[0]!.open(deployed.name, 99)).rejects.toMatchObject({ code: 'invalid_index' });
  await expect.poll(() => placed(deployed)).toMatchObject([{ instance_id: null }]);
});

describe('without an instance', () => {
  test('what the environment offers is known, and no instance wakes for it', async () => {
    const deployed = await deploy(world, 'asleep');
    const { server } = world;
    const path = `/v1/environments/${deployed.name}`;
    expect((await server.request('GET', `${path}/discovery`)).body.variants).toMatchObject([
      { name: 'counter', tools: { tools: [{ name: 'add' }] } },
    ]);
    expect((await server.request('GET', path)).body).toMatchObject({
      status: 'ready',
      status_detail: 'No instance runs now. The next session starts one.',
      source: { kind: 'hosted' },
      total_task_count: 10,
    });
    const ors = (method: string, route: string, body?: object) =>
      ask(server, method, route, { key: server.apiKey, headers: { 'x-deployment': deployed.name }, body });
    expect(JSON.parse((await ors('GET', '/counter/tools')).text)).toMatchObject({ tools: [{ name: 'add' }] });
    expect(JSON.parse((await ors('GET', '/counter/splits')).text)).toEqual([{ name: 'train', type: 'train' }]);
    expect(JSON.parse((await ors('POST', '/counter/num_tasks', { split: 'train' })).text)).toEqual({ num_tasks: 10 });
    expect((await ors('POST', '/counter/num_tasks', { split: 'dev' })).status).toBe(400);
    expect(await instancesOf(world, deployed)).toEqual([]);
  });

  test('tasks are read from an instance, which wakes for them', async () => {
    const deployed = await deploy(world, 'woken', { idle_s: 0 });
    const { body } = await world.server.request('GET', `/v1/environments/${deployed.name}/tasks?split=train&start=3&limit=2`);
    expect(body).toMatchObject({
      total: 10,
      tasks: [
        { index: 3, task_spec: { id: 3 } },
        { index: 4, task_spec: { id: 4 } },
      ],
    });
    expect(await instancesOf(world, deployed)).toHaveLength(1);
    await expect.poll(() => livingOf(world, deployed)).toEqual([]);
  });
});

describe('servers that their author runs', () => {
  test('share the sessions by how often they are named; one that is down gets none', async () => {
    const [heavy, light] = [await serve([echo]), await serve([echo])];
    onTestFinished(async () => void (await Promise.all([heavy.close(), light.close()])));
    const urls = [heavy.url, light.url, heavy.url];
    const deployed = await deploy(world, 'remote', { concurrency: 2, start_timeout_s: 1 }, { kind: 'urls', digest: 'sha256:urls', urls });
    await expect.poll(async () => (await livingOf(world, deployed)).map(({ state }) => state)).toEqual(['ready', 'ready', 'ready']);
    const sids = await Promise.all(Array.from({ length: 6 }, (_, index) => clients[index % 2]!.open(deployed.name, index)));
    const endpoints = new Map((await livingOf(world, deployed)).map(({ id, endpoint }) => [id, endpoint]));
    const shares = new Map<string, number>();
    for (const { instance_id: id, count } of await placed(deployed))
      shares.set(endpoints.get(id)!, (shares.get(endpoints.get(id)!) ?? 0) + count);
    expect(Object.fromEntries(shares)).toEqual({ [heavy.url]: 4, [light.url]: 2 });
    for (const sid of sids) await clients[0]!.end(sid);
    // One that is down from the beginning has no ready instance.
    const down = await deploy(
      world,
      'half',
      { concurrency: 2, start_timeout_s: 1 },
      { kind: 'urls', digest: 'sha256:half', urls: [light.url, 'http://127.0.0.1:9'] },
    );
    const sid = await clients[0]!.open(down.name);
    const ready = (await livingOf(world, down)).filter(({ state }) => state === 'ready');
    expect(ready.map(({ endpoint }) => endpoint)).toEqual([light.url]);
    await clients[0]!.end(sid);
    for (const { name } of [deployed, down]) await world.server.request('DELETE', `/v1/environments/${name}`);
  });
});

test('a request on another process than the one that opened the session finds its instance', async () => {
  const deployed = await deploy(world, 'roaming', { idle_s: 0 });
  const [one, other] = clients;
  const sid = await one!.open(deployed.name);
  expect(await one!.add(sid)).toMatch(/:1$/);
  expect(await other!.add(sid)).toMatch(/:2$/);
  const [row] = await livingOf(world, deployed);
  await world.engine.kill(row!.id);
  // Also a process that never used the instance learns that it is gone.
  await expect.poll(async () => (await instancesOf(world, deployed))[0]!.state).toBe('failed');
  expect(await other!.add(sid)).toBe('session_lost');
  await one!.end(sid);
});
