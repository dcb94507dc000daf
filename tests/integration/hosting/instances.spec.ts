import { newUuid } from '@palestra/kit';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ArtifactPruner } from '../../../apps/api/src/environments/hosting/deploys/artifact-pruner.ts';
import { insertDeploy } from '../../../apps/api/src/environments/hosting/deploys/deploy.sql.ts';
import { selectStartFacts } from '../../../apps/api/src/environments/hosting/instances/instance-status.sql.ts';
import type { HostingProviders } from '../../../apps/api/src/environments/hosting/providers/hosting-providers.ts';
import { createLogger } from '../../../apps/api/src/platform/telemetry/logger.ts';
import { ask } from '../sessions/session-requests.ts';
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

/** Instances follow the demand: real PostgreSQL, real processes. */
let world: HostingWorld;
let client: ReturnType<typeof clientOf>;

beforeAll(async () => {
  world = await startHosting();
  world.start();
  client = clientOf(world);
});
afterAll(() => world?.close());

const states = async (deployed: Deployed) => (await livingOf(world, deployed)).map(({ state }) => state).toSorted();
const pathOf = ({ name }: Deployed) => `/v1/environments/${name}`;
const hosting = async (deployed: Deployed) => (await world.server.request('GET', `${pathOf(deployed)}/hosting`)).body;

describe('scaling', () => {
  test('a session wakes an environment without instances, and the last session lets it sleep again', async () => {
    const deployed = await deploy(world, 'sleeper', { idle_s: 0 });
    expect(await instancesOf(world, deployed)).toEqual([]);
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toMatch(/^1:\d+:1$/);
    expect(await client.add(sid)).toMatch(/^1:\d+:2$/);
    expect(await states(deployed)).toEqual(['ready']);
    await client.end(sid);
    await expect.poll(() => states(deployed)).toEqual([]);
    const [row] = await instancesOf(world, deployed);
    expect(row).toMatchObject({ state: 'stopped', detail: 'It had no sessions.' });
    expect(world.engine.children.has(row!.id)).toBe(false);
  });

  test('as many instances as the sessions need, at most the maximum; the others wait in the queue', async () => {
    const deployed = await deploy(world, 'crowd', { concurrency: 2, max: 2, idle_s: 0 });
    const opening = Array.from({ length: 6 }, (_, index) => client.open(deployed.name, index));
    await expect.poll(() => states(deployed)).toEqual(['ready', 'ready']);
    const first = await Promise.race(opening.map((one) => one.then((sid) => sid)));
    const waiting = async () => (await world.server.request('GET', `${pathOf(deployed)}/instances`)).body;
    await expect.poll(async () => (await waiting()).waiting).toBe(2);
    const { instances, load } = await waiting();
    expect(load).toBe(3);
    expect(instances.map(({ sessions }: { sessions: number }) => sessions)).toEqual([2, 2]);
    expect(instances[0]).toMatchObject({ state: 'ready', version: 1, cold_start_ms: expect.any(Number), provider: 'process', restarts: 0 });
    // Each session that ends lets another one in.
    await client.end(first);
    await expect.poll(async () => (await waiting()).waiting).toBe(1);
    const ended = opening.map(async (one) => client.end(await one));
    await Promise.all(ended);
    await expect.poll(() => states(deployed)).toEqual([]);
    expect((await instancesOf(world, deployed)).length).toBe(2);
  });

  test('the load of tasks of Harbor is that of instances with at most 32 sessions', async () => {
    // Without a reconciler: sessions wait.
    const idle = await startHosting();
    const deployed = await deploy(idle, 'tasks', { concurrency: 64 });
    const loadOf = async () => (await idle.server.request('GET', `${pathOf(deployed)}/instances`)).body.load;
    await query(
      idle,
      `INSERT INTO sessions (sid, org_id, user_id, version_id, state, version, heartbeat_timeout_ms, idle_timeout_ms, waiting_on, created_at, last_seen_at, last_request_at)
       SELECT 'waits-' || n, 'org', 'user', $1, 'queued', 1, 60000, 60000, 'a process', now(), now(), now() FROM generate_series(1, 64) AS n`,
      [deployed.versionId],
    );
    expect(await loadOf()).toBe(1);
    await query(idle, `UPDATE environment_versions SET artifact = '{"kind":"harbor"}' WHERE id = $1`, [deployed.versionId]);
    expect(await loadOf()).toBe(2);
    await idle.close();
  });

  test('a session waits for the process that runs instances, which may start after it', async () => {
    const late = await startHosting();
    const deployed = await deploy(late, 'early');
    const early = clientOf(late);
    const opening = early.open(deployed.name);
    opening.catch(() => {});
    const waiting = async () => (await late.server.request('GET', `${pathOf(deployed)}/instances`)).body.waiting;
    await expect.poll(waiting).toBe(1);
    // Long enough for it to look for that process.
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await waiting()).toBe(1);
    late.start();
    expect(await early.add(await opening)).toMatch(/:1$/);
    await late.close();
  });

  test('warm instances run without sessions, and follow the settings', async () => {
    const deployed = await deploy(world, 'warm', { min_warm: 2, idle_s: 0 });
    await expect.poll(() => states(deployed)).toEqual(['ready', 'ready']);
    const put = (settings: object) => world.server.request('PUT', `${pathOf(deployed)}/hosting`, { body: settings });
    const before = await hosting(deployed);
    expect((await put({ ...before, min_warm: 5, max: 4 })).status).toBe(400);
    expect(await put({ ...before, gpus: 1, egress: ['pypi.org'] })).toMatchObject({
      status: 422,
      body: { code: 'hosting_unsupported', detail: expect.stringMatching(/egress a list of hosts.*gpus 1/) },
    });
    expect((await put({ ...before, min_warm: 1 })).status).toBe(200);
    await expect.poll(() => states(deployed)).toEqual(['ready']);
    // Other variables need other processes.
    const [old] = await livingOf(world, deployed);
    await put({ ...before, min_warm: 1, variables: { FLAG: '!' } });
    await expect
      .poll(async () => (await livingOf(world, deployed)).map(({ id, state }) => [id === old!.id, state]))
      .toEqual([[false, 'ready']]);
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toMatch(/^1:\d+:1!$/);
    await client.end(sid);
    await put({ ...before, min_warm: 0 });
    await expect.poll(() => states(deployed)).toEqual([]);
  });

  test('an organisation has no more instances than the operator allows', async () => {
    const small = await startHosting({
      limits: { ...world.server.config.limits, instances: { key: Infinity, org: 1 } },
      queue: { limit: 10, patienceMs: 1_500 },
    });
    small.start();
    const [first, second] = [await deploy(small, 'first'), await deploy(small, 'second')];
    const few = clientOf(small);
    const sid = await few.open(first.name);
    await expect(few.open(second.name)).rejects.toMatchObject({
      code: 'capacity_exhausted',
      message: expect.stringContaining('PALESTRA_MAX_INSTANCES_PER_ORG'),
    });
    expect(await few.add(sid)).toMatch(/:1$/);
    await small.close();
  });
});

describe('what ends', () => {
  test('an instance that dies is replaced; its sessions are lost, and say why', async () => {
    const deployed = await deploy(world, 'mortal', { min_warm: 1, idle_s: 0 });
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toMatch(/:1$/);
    const [dead] = await livingOf(world, deployed);
    await world.engine.kill(dead!.id);
    expect(await client.add(sid)).toBe('session_lost');
    await expect.poll(() => states(deployed)).toEqual(['ready']);
    const [row, replacement] = await instancesOf(world, deployed);
    expect(row).toMatchObject({
      id: dead!.id,
      state: 'failed',
      detail: expect.stringContaining('It was killed, probably because it needed more memory'),
    });
    expect(row!.detail).toContain('listening');
    expect(replacement).toMatchObject({ restarts: 1 });
    const { rows } = await world.server.database.pool.query('SELECT failure, failure_class FROM sessions WHERE sid = $1', [sid]);
    expect(rows[0]).toMatchObject({ failure_class: 'infrastructure', failure: expect.stringContaining('ended by SIGKILL') });
    // Lines of the log of one tenant are not for clients of others.
    expect(rows[0].failure).not.toContain('listening');
    const again = await client.open(deployed.name);
    expect(await client.add(again)).toMatch(/:1$/);
    await client.end(again);
    await world.server.request('DELETE', pathOf(deployed));
  });

  test('a NUL in what an engine says of one does not stop the work on the others', async () => {
    const [noisy, other] = [await deploy(world, 'noisy', { min_warm: 1 }), await deploy(world, 'quiet', { min_warm: 1, idle_s: 0 })];
    await expect.poll(async () => [await states(noisy), await states(other)]).toEqual([['ready'], ['ready']]);
    const [row] = await livingOf(world, noisy);
    const { shown } = world.engine.children.get(row!.id)!;
    Object.assign(shown, { state: 'exited', exit: { code: 1, reason: 'The container wrote \0 as its last word' } });
    await expect.poll(async () => (await instancesOf(world, noisy))[0]!.detail).toContain('The container wrote  as its last word');
    await world.engine.kill((await livingOf(world, other))[0]!.id);
    await expect.poll(async () => (await instancesOf(world, other)).length).toBe(2);
    for (const deployed of [noisy, other]) await world.server.request('DELETE', pathOf(deployed));
  });

  test('a session on an instance that dies is lost, also while no process runs instances', async () => {
    const own = await startHosting();
    const reconciler = own.start();
    const deployed = await deploy(own, 'unattended', { idle_s: 0 });
    const sid = await clientOf(own).open(deployed.name);
    expect(await clientOf(own).add(sid)).toMatch(/:1$/);
    const [dead] = await livingOf(own, deployed);
    await reconciler.stop();
    await own.engine.kill(dead!.id);
    const prompt = ask(own.server, 'GET', '/prompt', { sid, key: own.server.apiKey });
    await sleep(8_000);
    own.start();
    expect(await prompt).toMatchObject({ status: 410, text: expect.stringContaining('"session_lost"') });
    await own.close();
  });

  test('a deterministic session continues on another instance', async () => {
    const deployed = await deploy(world, 'replayed', { idle_s: 0 }, counterArtifact({ FIXED: '1' }), { sessions: { deterministic: true } });
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toBe('1:0:1');
    const [dead] = await livingOf(world, deployed);
    await world.engine.kill(dead!.id);
    expect(await client.add(sid)).toBe('1:0:2');
    const rows = await query<{ instance_id: string; state: string }>(world, 'SELECT instance_id, state FROM sessions WHERE sid = $1', [
      sid,
    ]);
    expect(rows[0]).toMatchObject({ state: 'ready' });
    expect(rows[0]!.instance_id).not.toBe(dead!.id);
    await client.end(sid);
    await world.server.request('DELETE', pathOf(deployed));
  });

  test('a restart lets sessions finish where they are', async () => {
    const deployed = await deploy(world, 'restarted', { min_warm: 1, idle_s: 0 });
    const sid = await client.open(deployed.name);
    const before = await client.add(sid);
    const [old] = await livingOf(world, deployed);
    const { status, body } = await world.server.request('POST', `${pathOf(deployed)}/instances/${old!.id}/restart`);
    expect({ status, body }).toMatchObject({ status: 200, body: { id: old!.id, state: 'draining' } });
    await expect.poll(() => states(deployed)).toEqual(['draining', 'ready']);
    expect(await client.add(sid)).toBe(before.replace(/1$/, '2'));
    const other = await client.open(deployed.name);
    expect((await client.add(other)).split(':')[1]).not.toBe(before.split(':')[1]);
    await client.end(sid);
    await expect.poll(() => states(deployed)).toEqual(['ready']);
    await client.end(other);
    expect((await world.server.request('POST', `${pathOf(deployed)}/instances/${crypto.randomUUID()}/restart`)).body.code).toBe(
      'instance_not_found',
    );
    await world.server.request('DELETE', pathOf(deployed));
  });

  test('a deleted environment ends its sessions and leaves nothing on the engine', async () => {
    const deployed = await deploy(world, 'deleted', { min_warm: 1 });
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toMatch(/:1$/);
    const [row] = await livingOf(world, deployed);
    expect((await world.server.request('DELETE', pathOf(deployed))).status).toBe(200);
    await expect.poll(() => client.add(sid)).toBe('session_lost');
    await expect.poll(() => livingOf(world, deployed)).toEqual([]);
    expect(world.engine.children.has(row!.id)).toBe(false);
    await expect
      .poll(async () => (await query(world, 'SELECT state, failure_class, failure FROM sessions WHERE sid = $1', [sid]))[0])
      .toMatchObject({ state: 'lost', failure_class: 'infrastructure', failure: expect.stringContaining('Session lost') });
    await expect(client.open(deployed.name)).rejects.toMatchObject({ code: 'deployment_not_found' });
  });

  test('a draining instance ends after the time that its sessions have', async () => {
    const deployed = await deploy(world, 'drained', { min_warm: 1, drain_s: 2 });
    const sid = await client.open(deployed.name);
    await client.add(sid);
    const [old] = await livingOf(world, deployed);
    await world.server.request('POST', `${pathOf(deployed)}/instances/${old!.id}/restart`);
    await expect
      .poll(async () => (await instancesOf(world, deployed))[0])
      .toMatchObject({ state: 'stopped', detail: 'Its sessions did not end within 2 s.' });
    await expect.poll(() => client.add(sid)).toBe('session_lost');
    await world.server.request('DELETE', pathOf(deployed));
  });
});

describe('servers that do not start', () => {
  test('one that ends at once is tried five times, and clients get its last lines', async () => {
    const deployed = await deploy(world, 'faulty', {}, counterArtifact({ MODE: 'exit' }));
    await expect(client.open(deployed.name)).rejects.toMatchObject({
      code: 'instance_failed',
      message: expect.stringMatching(/The last 5 instances.*exited with code 3.*cannot find the weights/s),
    });
    expect(await instancesOf(world, deployed)).toHaveLength(5);
    const { body } = await world.server.request('GET', pathOf(deployed));
    expect(body).toMatchObject({ status: 'unreachable', status_detail: expect.stringContaining('cannot find the weights') });
    // Its owner mends it, and says so.
    const [row] = await instancesOf(world, deployed);
    await world.server.request('POST', `${pathOf(deployed)}/instances/${row!.id}/restart`);
    const again = client.open(deployed.name);
    // It may end before the request below is answered.
    again.catch(() => {});
    await expect.poll(async () => (await instancesOf(world, deployed)).length).toBeGreaterThan(5);
    await world.server.request('DELETE', pathOf(deployed));
    await expect(again).rejects.toMatchObject({ code: 'session_lost' });
  });

  test('one whose last lines have a secret and a NUL ends like others, and shows neither', async () => {
    const own = await startHosting({ secretKey: 'k'.repeat(40) });
    const last = JSON.stringify(`the key is \0${'x'.repeat(280)} sk-a-secret-value!`);
    const deployed = await deploy(own, 'telling', { min_warm: 1 }, counterArtifact({ MODE: 'exit', LAST: last }));
    await own.server.request('PUT', `${pathOf(deployed)}/secrets/API_KEY`, { body: { value: 'sk-a-secret-value' } });
    own.start();
    const first = async () => (await instancesOf(own, deployed))[0];
    await expect.poll(async () => (await first())?.stopped_at).toBeInstanceOf(Date);
    const { detail } = (await first())!;
    expect(detail).toMatch(/exited with code 3.*cannot find the weights\nthe key is x{280} /s);
    expect(detail).not.toContain('sk-a');
    await own.close();
  });

  test('one that never listens has failed after its time, one that listens late is ready then', async () => {
    const deaf = await deploy(world, 'deaf', { start_timeout_s: 5, min_warm: 1 }, counterArtifact({ MODE: 'deaf' }));
    const late = await deploy(world, 'late', { idle_s: 0 }, counterArtifact({ MODE: 'late', LATE_MS: '3000' }));
    const sid = await client.open(late.name);
    expect(await client.add(sid)).toMatch(/:1$/);
    await client.end(sid);
    await expect
      .poll(async () => (await instancesOf(world, deaf))[0])
      .toMatchObject({ state: 'failed', detail: 'It did not answer within 5 s.\nLast lines of its log:\nstarting version 1' });
    await world.server.request('DELETE', pathOf(deaf));
    await world.server.request('DELETE', pathOf(late));
  });
});

describe('an engine', () => {
  test('that is away changes nothing, and what runs goes on', async () => {
    const deployed = await deploy(world, 'steady', { idle_s: 0 });
    const sid = await client.open(deployed.name);
    await client.add(sid);
    const [row] = await livingOf(world, deployed);
    world.engine.isAway = true;
    await expect
      .poll(async () => (await query<{ detail: string | null }>(world, `SELECT detail FROM hosting_engines WHERE name = 'process'`))[0])
      .toMatchObject({ detail: 'The engine of the test is away.' });
    expect(await client.add(sid)).toMatch(/:2$/);
    expect(await states(deployed)).toEqual(['ready']);
    world.engine.isAway = false;
    await expect
      .poll(async () => (await query<{ detail: string | null }>(world, `SELECT detail FROM hosting_engines WHERE name = 'process'`))[0])
      .toEqual({ detail: null });
    expect((await livingOf(world, deployed))[0]!.id).toBe(row!.id);
    await client.end(sid);
  });

  test('completes an instance of which it has only a part', async () => {
    world.engine.halves = 1;
    const deployed = await deploy(world, 'halved', { min_warm: 1 });
    await expect.poll(() => states(deployed)).toEqual(['ready']);
    expect(await instancesOf(world, deployed)).toHaveLength(1);
    expect(world.engine.halves).toBe(0);
    await world.server.request('DELETE', pathOf(deployed));
  });

  test('that cannot end a failed instance starts others of its version', async () => {
    const deployed = await deploy(world, 'stuck', { idle_s: 0 });
    const [row] = await query<{ id: string }>(
      world,
      `INSERT INTO environment_instances (environment_id, version_id, org_id, provider, state)
       SELECT environment_id, id, (SELECT org_id FROM environments WHERE id = $1), 'process', 'failed' FROM environment_versions WHERE id = $2
       RETURNING id`,
      [deployed.environmentId, deployed.versionId],
    );
    world.engine.stuck.add(row!.id);
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toMatch(/:1$/);
    await client.end(sid);
    world.engine.stuck.clear();
    await world.server.request('DELETE', pathOf(deployed));
  });

  test('that cannot end five failed instances says for some minutes only that the version does not start', async () => {
    const deployed = await deploy(world, 'stuck-long', { idle_s: 0 });
    const ids = Array.from({ length: 5 }, () => newUuid());
    for (const id of ids) world.engine.stuck.add(id);
    const insert = `INSERT INTO environment_instances (id, environment_id, version_id, org_id, provider, state)
      SELECT i, v.environment_id, v.id, e.org_id, 'process', 'failed' FROM environment_versions v JOIN environments e ON e.id = v.environment_id, unnest($2::uuid[]) i
      WHERE v.id = $1`;
    await query(world, insert, [deployed.versionId, ids]);
    const unready = async () => (await selectStartFacts(world.server.serviceDatabase.pool, deployed.versionId))!.unready;
    expect(await unready()).toBe(5);
    await query(world, `UPDATE environment_instances SET created_at = now() - interval '18 minutes' WHERE id = ANY($1)`, [ids]);
    expect(await unready()).toBe(0);
    world.engine.stuck.clear();
    await world.server.request('DELETE', pathOf(deployed));
  });

  test('keeps the artifacts of versions; nothing is deleted while a deploy runs', async () => {
    const { serviceDatabase: database } = world.server;
    const deployed = await deploy(world, 'kept', {}, counterArtifact({ OF: 'kept' }));
    const providers = { all: async () => [world.engine] } as unknown as HostingProviders;
    const pruner = new ArtifactPruner({ handle: () => {} } as never, database, providers, createLogger('silent'));
    const { signal } = new AbortController();
    await pruner.prune(signal);
    expect(world.engine.pruned.at(-1)).toContain(counterArtifact({ OF: 'kept' }).digest);
    const [{ org_id: orgId }] = (await query<{ org_id: string }>(world, 'SELECT org_id FROM environments WHERE id = $1', [
      deployed.environmentId,
    ])) as [{ org_id: string }];
    const open = { environmentId: deployed.environmentId, orgId, sourceKey: null, channel: null, author: 'test' };
    await insertDeploy(database.pool, { id: newUuid(), source: { kind: 'image', image: 'x' }, options: {}, ...open });
    await pruner.prune(signal);
    expect(world.engine.pruned).toHaveLength(1);
    await world.server.request('DELETE', pathOf(deployed));
    await pruner.prune(signal);
    expect(world.engine.pruned.at(-1)).not.toContain(counterArtifact({ OF: 'kept' }).digest);
  });

  test('keeps what another process adopts, and nothing that no row names', async () => {
    const deployed = await deploy(world, 'adopted', { min_warm: 1 });
    await expect.poll(() => states(deployed)).toEqual(['ready']);
    const [row] = await livingOf(world, deployed);
    const stray = strayOf(deployed);
    await world.engine.ensure(stray);
    // Two more processes that wait for the lease of the first one.
    await world.restart();
    await expect.poll(() => world.engine.children.has(stray.id)).toBe(false);
    expect((await livingOf(world, deployed)).map(({ id, state }) => ({ id, state }))).toEqual([{ id: row!.id, state: 'ready' }]);
    const sid = await client.open(deployed.name);
    expect(await client.add(sid)).toMatch(/:1$/);
    await client.end(sid);
    await world.server.request('DELETE', pathOf(deployed));
  });
});

function strayOf({ versionId, name }: Deployed) {
  return {
    id: crypto.randomUUID(),
    versionId,
    environment: name,
    artifact: counterArtifact(),
    resources: { cpus: 1, memoryMb: 512, pids: 100, diskMb: 100, gpus: 0 },
    egress: { kind: 'open' as const },
    isolation: 'none' as const,
    variables: {},
    secrets: {},
  };
}

test('the log of an instance is stored, and its use is shown', async () => {
  const deployed = await deploy(world, 'talkative', { min_warm: 1 });
  await expect.poll(() => states(deployed)).toEqual(['ready']);
  const [row] = await livingOf(world, deployed);
  const lines = () =>
    query<{ text: string; stream: string }>(world, 'SELECT text, stream FROM hosting_logs WHERE source_id = $1 ORDER BY seq', [row!.id]);
  await expect.poll(async () => (await lines()).map(({ text }) => text)).toEqual(['starting version 1', 'listening']);
  await expect
    .poll(async () => (await world.server.request('GET', `${pathOf(deployed)}/instances`)).body.instances[0], { timeout: 40_000 })
    .toMatchObject({ cpus: 0.1, memory_mb: 50 });
  await addVersion(world, deployed, counterArtifact({ VERSION: '2' }));
  await world.server.request('DELETE', pathOf(deployed));
});
