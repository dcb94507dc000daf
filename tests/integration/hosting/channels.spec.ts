import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CanaryWatch } from '../../../apps/api/src/environments/hosting/channels/canary-watch.ts';
import { isOfCanary } from '../../../apps/api/src/environments/hosting/channels/canary.ts';
import { ChannelRepository } from '../../../apps/api/src/environments/hosting/channels/channel.repository.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { createCaller } from '../../support/callers.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import {
  addVersion,
  clientOf,
  counterArtifact,
  deploy,
  type Deployed,
  type HostingWorld,
  instancesOf,
  livingOf,
  query,
  startHosting,
} from './hosting.world.ts';

/** Which version serves, on two API processes. */
let world: HostingWorld;
let second: TestServer;
let here: ReturnType<typeof clientOf>;
let there: ReturnType<typeof clientOf>;

beforeAll(async () => {
  world = await startHosting();
  world.start();
  const { config, apiKey } = world.server;
  second = await startServer({ databaseUrl: config.databaseUrl, dataDir: config.dataDir, apiKey, jobs: 'off' });
  [here, there] = [clientOf(world), clientOf(world, second)];
});
afterAll(async () => {
  await second?.close();
  await world?.close();
});

const version = (number: number, variables: Record<string, string> = {}) => counterArtifact({ VERSION: String(number), ...variables });
const pathOf = ({ name }: Deployed) => `/v1/environments/${name}`;
const post = (deployed: Deployed, action: string, body: object, headers = {}) =>
  world.server.request('POST', `${pathOf(deployed)}/${action}`, { body, headers });
const channels = async (deployed: Deployed) => (await world.server.request('GET', `${pathOf(deployed)}/channels`)).body.channels;
/** The version on which a new session runs. */
const servedBy = async (client: typeof here, name: string) => {
  const sid = await client.open(name);
  const [number] = (await client.add(sid)).split(':');
  await client.end(sid);
  return Number(number);
};

describe('channels', () => {
  test('a name follows its channel; numbers, `latest` and other channels select versions', async () => {
    const deployed = await deploy(world, 'named', { idle_s: 0 }, version(1));
    await addVersion(world, deployed, version(2));
    const { name } = deployed;
    expect(await servedBy(here, name)).toBe(1);
    expect(await servedBy(here, `${name}@latest`)).toBe(2);
    expect(await servedBy(here, `${name}@2`)).toBe(2);
    expect(await servedBy(here, `${name}@stable`)).toBe(1);
    await expect(servedBy(here, `${name}@beta`)).rejects.toMatchObject({
      code: 'deployment_not_found',
      message: expect.stringContaining('no version or channel beta'),
    });
    expect(await post(deployed, 'promote', { version: 2, channel: 'beta' })).toMatchObject({
      status: 200,
      body: { name: 'beta', version: 2, previous_version: null },
    });
    expect(await servedBy(here, `${name}@beta`)).toBe(2);
    expect(await servedBy(here, name)).toBe(1);
    // The pages show the version that serves, not the newest one.
    expect((await world.server.request('GET', pathOf(deployed))).body.version).toBe(1);
  });

  test('a promotion and a rollback count on every process at once, and running sessions finish on their version', async () => {
    const deployed = await deploy(world, 'moved', { idle_s: 0 }, version(1));
    await addVersion(world, deployed, version(2));
    const sid = await there.open(deployed.name);
    expect(await there.add(sid)).toMatch(/^1:\d+:1$/);
    const promoted = await post(deployed, 'promote', { version: 2 });
    expect(promoted).toMatchObject({
      status: 200,
      body: { name: 'stable', version: 2, previous_version: 1, canary_version: null, reason: expect.stringMatching(/^Promoted by .+\.$/) },
    });
    await expect.poll(() => servedBy(there, deployed.name)).toBe(2);
    expect(await there.add(sid)).toMatch(/^1:\d+:2$/);
    const rolledBack = await post(deployed, 'rollback', {});
    expect(rolledBack).toMatchObject({
      status: 200,
      body: { version: 1, previous_version: null, reason: expect.stringMatching(/^Rolled back by/) },
    });
    expect(await servedBy(here, deployed.name)).toBe(1);
    await expect.poll(() => servedBy(there, deployed.name)).toBe(1);
    // A second click does not promote what was just left.
    expect(await post(deployed, 'rollback', {})).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(await there.add(sid)).toMatch(/^1:\d+:3$/);
    await there.end(sid);
    await expect.poll(() => livingOf(world, deployed)).toEqual([]);
  });

  test('refuse what does not exist, and others', async () => {
    const deployed = await deploy(world, 'strict', {}, version(1));
    const { body: bare } = await world.server.request('POST', '/v1/environments', { body: { name: 'bare', description: '' } });
    expect((await post(deployed, 'promote', { version: 9 })).body).toMatchObject({ code: 'deployment_not_found' });
    expect((await post(deployed, 'promote', { version: 1, channel: 'latest' })).status).toBe(400);
    expect((await post(deployed, 'promote', { version: 1, percent: 10 })).body.detail).toContain('follows this version already');
    expect((await post(deployed, 'rollback', { channel: 'beta' })).body.code).toBe('channel_not_found');
    expect(
      (await world.server.request('POST', `/v1/environments/${bare.owner}/bare/promote`, { body: { version: 1 } })).body.detail,
    ).toContain('never deployed');
    const { headers } = await createCaller(world.server, 'stranger');
    expect((await post(deployed, 'promote', { version: 1 }, headers)).status).toBe(404);
    expect((await post(deployed, 'rollback', {}, headers)).status).toBe(404);
    await world.server.database.prisma.environment.updateMany({ where: { name: 'strict' }, data: { isPrivate: false } });
    const shown = await world.server.request('GET', `${pathOf(deployed)}/channels`, { headers });
    expect(shown.body.channels).toMatchObject([{ version: 1, reason: null }]);
    expect((await channels(deployed))[0].reason).toMatch(/\w/);
  });
});

describe('a canary', () => {
  const judge = () => {
    const { pool } = world.server.serviceDatabase;
    const jobs = { handle: () => {} } as never;
    // One that cannot be judged comes first: the others are.
    class WithBroken extends ChannelRepository {
      override async listCanaries() {
        const canaries = await super.listCanaries();
        return [...canaries.slice(0, 1).map((one) => ({ ...one, canaryVersionId: 'not an id' })), ...canaries];
      }
    }
    const watch = new CanaryWatch(jobs, new WithBroken(world.server.serviceDatabase), { pool } as never, createLogger('silent'));
    return watch.judge(AbortSignal.timeout(30_000));
  };
  /** Plays sessions one after another until `count` of each version have ended. */
  async function play(name: string, count: number): Promise<Map<string, number>> {
    const ended = new Map<string, number>();
    for (let round = 0; Math.min(ended.get('1') ?? 0, ended.get('2') ?? 0) < count && round < 40; round += 1) {
      const sids = await Promise.all(Array.from({ length: 10 }, (_, index) => here.open(name, index)));
      await Promise.all(sids.map((sid) => here.add(sid)));
      await Promise.all(sids.map((sid) => here.end(sid)));
      for (const sid of sids) ended.set(isOfCanary(sid, 50) ? '2' : '1', (ended.get(isOfCanary(sid, 50) ? '2' : '1') ?? 0) + 1);
    }
    // Results are stored after they are answered.
    await expect.poll(() => query(world, 'SELECT sid FROM session_calls WHERE ended_at IS NULL')).toEqual([]);
    return ended;
  }
  const versionsOf = (sids: string[]) =>
    query<{ sid: string; number: number }>(
      world,
      'SELECT s.sid, v.number FROM sessions AS s JOIN environment_versions AS v ON v.id::text = s.version_id WHERE s.sid = ANY($1)',
      [sids],
    );

  test('gets its share of the new sessions, by their ids', async () => {
    const deployed = await deploy(world, 'shares', { idle_s: 0 }, version(1));
    await addVersion(world, deployed, version(2));
    expect((await post(deployed, 'promote', { version: 2, percent: 50 })).body).toMatchObject({
      version: 1,
      canary_version: 2,
      canary_percent: 50,
    });
    const sids = await Promise.all(
      Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? here : there).open(deployed.name, index % 10)),
    );
    const found = await versionsOf(sids);
    for (const { sid, number } of found) expect(number).toBe(isOfCanary(sid, 50) ? 2 : 1);
    expect(new Set(found.map(({ number }) => number))).toEqual(new Set([1, 2]));
    for (const sid of sids) expect((await here.add(sid))[0]).toBe(isOfCanary(sid, 50) ? '2' : '1');
    await post(deployed, 'rollback', {});
    expect((await channels(deployed))[0]).toMatchObject({ version: 1, canary_version: null, canary_percent: 0 });
    await Promise.all(sids.map((sid) => here.end(sid)));
  });

  test('whose sessions get no reward is rolled back, with the reason; a good one stays', async () => {
    const deployed = await deploy(world, 'judged', { idle_s: 0 }, version(1));
    await addVersion(world, deployed, version(2, { MODE: 'broken' }));
    await post(deployed, 'promote', { version: 2, percent: 50 });
    await judge();
    expect((await channels(deployed))[0].canary_version).toBe(2);
    await play(deployed.name, 20);
    await judge();
    expect((await channels(deployed))[0]).toMatchObject({
      version: 1,
      canary_version: null,
      reason: expect.stringMatching(
        /^Rolled back automatically from version 2: \d+ of its last \d+ sessions \(100 %\) ended without a reward; of the version beside it 0 %\.$/,
      ),
    });
    expect(await servedBy(here, deployed.name)).toBe(1);
    const good = await deploy(world, 'good', { idle_s: 0 }, version(1));
    await addVersion(world, good, version(2));
    await post(good, 'promote', { version: 2, percent: 50 });
    await play(good.name, 20);
    await judge();
    expect((await channels(good))[0]).toMatchObject({ canary_version: 2, canary_percent: 50 });
  });

  test('whose instances do not start is rolled back', async () => {
    const deployed = await deploy(world, 'stillborn', { idle_s: 0 }, version(1));
    const canary = await addVersion(world, deployed, version(2, { MODE: 'exit' }));
    await post(deployed, 'promote', { version: 2, percent: 100, channel: 'beta' });
    await post(deployed, 'promote', { version: 2, percent: 1 });
    await expect(here.open(`${deployed.name}@beta`)).rejects.toMatchObject({ code: 'instance_failed' });
    expect((await instancesOf(world, deployed)).every(({ version_id: id }) => id === canary)).toBe(true);
    await judge();
    expect((await channels(deployed)).find(({ name }: { name: string }) => name === 'stable')).toMatchObject({
      version: 1,
      canary_version: null,
      reason: 'Rolled back automatically from version 2: its last 5 instances ended before they answered.',
    });
  });
});
