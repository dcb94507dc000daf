import { afterAll, beforeAll, expect, test } from 'vitest';
import { full } from '../../support/full.ts';
import { type CrashesWorld, NONE, Players, startCrashes } from './crashes.world.ts';
import { counterArtifact, deploy, instancesOf, livingOf, query } from './hosting.world.ts';

/** `kill -9` of each process of a service that hosts an environment, while sessions play. docker.crashes.spec.ts kills the engine. */
const SESSIONS = full ? 256 : 64;
const INSTANCES = 3;
/** All sessions find room while one instance is away. */
const CONCURRENCY = Math.ceil(SESSIONS / (INSTANCES - 1));
/** So that the calls leave the processors of a small machine time for the processes that start. */
const CALL_MS = SESSIONS * 4;

let world: CrashesWorld;
beforeAll(async () => {
  world = await startCrashes();
});
afterAll(() => world?.close());

test(`kill -9 during ${SESSIONS} sessions: calls run once, sessions end with a reason, instances return, nothing is left`, async () => {
  const settings = { min_warm: INSTANCES, max: INSTANCES, concurrency: CONCURRENCY };
  const deployed = await deploy(world, 'counted', settings, counterArtifact({ COUNT_FILE: world.countFile }));
  const killed: string[] = [];
  const ready = async () =>
    (await livingOf(world, deployed)).filter(({ id, state }) => state === 'ready' && !killed.includes(id)).map(({ id }) => id);
  const allReady = async () => {
    await expect.poll(ready, { timeout: 60_000, interval: 50 }).toHaveLength(INSTANCES);
  };
  await allReady();
  const players = new Players(world.client(), deployed.name, SESSIONS, CALL_MS);
  /** Kills during calls, and waits until all instances are back and calls go on. */
  const during = async (what: string, kill: () => unknown) => {
    await players.answers(SESSIONS);
    const at = Date.now();
    await kill();
    await allReady();
    console.log(
      `${what}: all instances after ${Date.now() - at} ms, ${players.answered.length} calls, ${players.lost.length} sessions lost`,
    );
    await players.answers(SESSIONS);
  };
  /** `from`: 0 is the process that starts the server and keeps its log, 1 the server. */
  const killInstance = async (from: 0 | 1) => {
    const [id] = await ready();
    killed.push(id!);
    process.kill(world.processesOf(id!)[from]!, 'SIGKILL');
  };

  await during('service and its process for jobs', () => world.replicas.all[0]!.kill());
  const back = world.replicas.all[0]!.restart();
  expect(players.lost).toEqual([]);
  await during('server of an instance', () => killInstance(1));
  await during('process of an instance', () => killInstance(0));
  await back;
  await during('server of an instance and all processes for jobs', async () => {
    await Promise.all([world.killWorker(0), world.killWorker(1)]);
    await killInstance(1);
  });
  await players.end();
  expect(players.faults(world.runs())).toEqual(NONE);

  // Only sessions of the killed instances ended early.
  expect(new Set(players.lost)).toEqual(new Set(['session_lost']));
  const ended = await query<{ state: string; failure_class: string; instance_id: string | null; count: number }>(
    world,
    `SELECT state, failure_class, CASE WHEN state <> 'closed' THEN instance_id END AS instance_id, count(*)::int AS count
     FROM sessions WHERE admitted_at IS NOT NULL GROUP BY 1, 2, 3`,
  );
  console.log(JSON.stringify({ answered: players.answered.length, episodes: players.episodes, lost: players.lost.length, ended }));
  expect(ended.find(({ state }) => state === 'closed')).toMatchObject({ failure_class: 'ok' });
  for (const { state, failure_class: failureClass, instance_id: id } of ended.filter((one) => one.state !== 'closed')) {
    expect({ state, failureClass }).toEqual({ state: 'lost', failureClass: 'infrastructure' });
    expect(killed).toContain(id);
  }

  // What was killed is removed a moment after others are ready in its place.
  const states = async () => (await livingOf(world, deployed)).map(({ state }) => state);
  await expect.poll(states, { timeout: 60_000 }).toEqual(Array.from({ length: INSTANCES }, () => 'ready'));
  const left = await livingOf(world, deployed);
  await expect.poll(() => world.leftovers()).toEqual(new Set(left.map(({ id }) => id)));
  const gone = (await instancesOf(world, deployed)).filter(({ id }) => killed.includes(id));
  expect(gone.map(({ state }) => state)).toEqual(killed.map(() => 'failed'));
  await world.server.request('DELETE', `/v1/environments/${deployed.name}`);
  await expect.poll(() => world.leftovers()).toEqual(new Set());
}, 300_000);
