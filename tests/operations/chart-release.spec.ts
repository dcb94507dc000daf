import { setTimeout as sleep } from 'node:timers/promises';
import { PalestraClient } from '@palestra/client';
import type { JsonObject } from '@palestra/protocol';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { requestsOf } from '../k8s/support/audit.ts';
import { buildGuessImages } from '../k8s/support/guess-images.ts';
import { type ChartWorld, prepareRelease, type Release, startChartWorld } from './chart.world.ts';
import { policiesOf } from './network-policies.ts';

/**
 * A release of deploy/helm/palestra, with pods that run and environments that it runs as pods of another namespace, by the service account
 * that the chart makes. The tests follow each other.
 */
let world: ChartWorld;
let release: Release;
let client: PalestraClient;
let images: [string, string];
/** Of the hosted environment. */
let environment: string;

beforeAll(async () => {
  world = await startChartWorld();
  release = await prepareRelease(world);
  images = await buildGuessImages(world.engine);
  client = new PalestraClient({ url: release.url, apiKey: release.apiKey });
});
afterAll(async () => {
  await client?.close();
  await release?.close();
  await world?.close();
});

const componentOf = ({ metadata }: any): string => metadata.labels['app.kubernetes.io/component'];
const podsOf = async (namespace: string, labels = ''): Promise<any[]> => {
  const { items } = await world.plane.api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(labels)}`);
  return items.filter(({ metadata, status }: any) => status.phase === 'Running' && !metadata.deletionTimestamp);
};

async function deploy(image: string): Promise<void> {
  const settings = { memory_mb: 256, egress: 'none' as const };
  const { id } = await client.hosting.deploy(environment, { source: { kind: 'image', image, port: 8_000 }, settings, create: true });
  await expect.poll(async () => (await client.hosting.getDeploy(id)).ended_at).not.toBeNull();
  expect(await client.hosting.getDeploy(id)).toMatchObject({ state: 'ready', error: null });
}

async function play(name: string, tool: string, input: JsonObject): Promise<string> {
  await using session = await client.session({ environment: name, split: 'train', index: 0 });
  const { blocks } = await session.call(tool, input);
  return blocks.map((block) => ('text' in block ? block.text : '')).join('');
}

test('the migration runs, all pods become ready without privileges, and a session plays', async () => {
  await release.helm('install', '1');
  const running = await podsOf(world.namespace);
  expect(running.map(componentOf).toSorted()).toEqual(['api', 'api', 'worker']);
  for (const pod of running) {
    const { spec } = pod;
    const isWorker = componentOf(pod) === 'worker';
    expect(spec).toMatchObject({ automountServiceAccountToken: isWorker, securityContext: { runAsNonRoot: true, runAsUser: 1000 } });
    const [{ securityContext, volumeMounts }] = spec.containers;
    expect(securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
    const token = isWorker ? ['/var/run/secrets/kubernetes.io/serviceaccount'] : [];
    expect(volumeMounts.map(({ mountPath }: any) => mountPath).toSorted()).toEqual(['/data', '/tmp', ...token]);
  }
  expect(await play('palestra/echo', 'echo', { text: 'in pods' })).toBe('in pods');
});

test('an environment is deployed by its image, and its sessions run in a pod that the release made', async () => {
  const { name } = (await (
    await fetch(`${release.url}/v1/namespace/current?type=user`, { headers: { 'x-api-key': release.apiKey } })
  ).json()) as { name: string };
  environment = `${name}/guess`;
  await deploy(images[0]);
  expect(await play(environment, 'guess', { number: 1 })).toBe('version 1');
  const instances = await podsOf(world.environments);
  expect(instances.length).toBeGreaterThan(0);
  for (const { spec } of instances) {
    expect(spec).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
    expect(spec.containers[0].securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
  }
});

test('the network policies of both namespaces admit what the service needs', async () => {
  const service = await policiesOf(world.plane.api, world.namespace);
  const instances = await policiesOf(world.plane.api, world.environments);
  const [api, worker] = [
    (await podsOf(world.namespace, 'app.kubernetes.io/component=api'))[0],
    (await podsOf(world.namespace, 'app.kubernetes.io/component=worker'))[0],
  ];
  const [instance] = await podsOf(world.environments, 'palestra.dev/role=server');
  for (const caller of [api, worker]) {
    expect(await service.admits('egress', caller, instance, 8_000)).toBe(true);
    expect(await instances.admits('ingress', instance, caller, 8_000)).toBe(true);
    // Nothing leads back, and instances do not reach each other.
    expect(await instances.admits('egress', instance, caller, 8_080)).toBe(false);
  }
  expect(await instances.admits('ingress', instance, instance, 8_000)).toBe(false);
  // The API server has an address, no pod: workers reach it, the API does not need it.
  expect(await service.admits('egress', worker, '10.0.0.1', 6_443)).toBe(true);
  expect(await service.admits('egress', api, '10.0.0.1', 6_443)).toBe(false);
});

test('an upgrade under load loses no acknowledged call and repeats none, also of environments in pods', async () => {
  const isOver = new AbortController();
  const played: { sid: string; acknowledged: string[] }[] = [];
  const before = new Set(release.targets.map(({ host }) => host));
  const workers = (await podsOf(world.namespace, 'app.kubernetes.io/component=worker')).map(({ metadata }) => metadata.name);
  const instances = (await podsOf(world.environments)).map(({ metadata }) => metadata.name);
  const load = Promise.all(Array.from({ length: 8 }, (_, player) => playOn(player, played, isOver.signal)));
  try {
    // An error of a client ends the wait.
    await Promise.race([release.helm('upgrade', '2'), load]);
    const replaced = () => release.targets.length === 2 && release.targets.every(({ host }) => !before.has(host));
    await vi.waitUntil(replaced, { timeout: 60_000, interval: 100 });
  } finally {
    isOver.abort();
  }
  await load;
  let calls = 0;
  for (const { sid, acknowledged } of played) {
    const ledger: string[] = [];
    for await (const { tool, input } of client.sessions.calls(sid))
      if (tool === 'echo' || tool === 'guess') ledger.push(Object.values(JSON.parse(input) as object).join());
    expect(ledger).toEqual(acknowledged);
    calls += acknowledged.length;
  }
  expect(calls).toBeGreaterThan(100);
  // The new worker has taken over the instances of the old one.
  const now = (await podsOf(world.environments)).map(({ metadata }) => metadata.name);
  expect(now).toEqual(expect.arrayContaining(instances));
  await client.hosting.setSecret(environment, 'TOKEN', 'as a file');
  await deploy(images[1]);
  expect(await play(environment, 'guess', { number: 1 })).toBe('version 2');
  expect((await podsOf(world.namespace, 'app.kubernetes.io/component=worker')).map(({ metadata }) => metadata.name)).not.toEqual(workers);
});

/** Half of the players use an environment that is a child process of each replica, half one in pods. */
async function playOn(player: number, played: { sid: string; acknowledged: string[] }[], isOver: AbortSignal): Promise<void> {
  const own = new PalestraClient({ url: release.url, apiKey: release.apiKey });
  const isHosted = player % 2 === 1;
  while (!isOver.aborted) {
    await using session = await own.session({
      environment: isHosted ? environment : 'palestra/echo',
      split: 'train',
      index: isHosted ? 0 : player,
    });
    const one = { sid: session.sid, acknowledged: [] as string[] };
    played.push(one);
    for (let call = 0; call < 40 && !isOver.aborted; call += 1) {
      const text = `${player} ${call}`;
      const { blocks } = isHosted ? await session.call('guess', { number: call }) : await session.call('echo', { text });
      expect(blocks).toMatchObject([{ text: isHosted ? 'version 1' : text }]);
      one.acknowledged.push(isHosted ? String(call) : text);
      await sleep(50);
    }
  }
  await own.close();
}

test('the Role of the chart was enough: the API server refused nothing but what is optional', () => {
  const requests = requestsOf(world.plane, world.namespace, 'palestra-worker');
  const refused = requests.filter(({ status }) => status === 401 || status === 403);
  // `hosting.kubernetes.listNodes` and `agentSandbox` are off.
  const optional = new Set(['list nodes', 'list sandboxclaims']);
  expect(refused.filter(({ right }) => !optional.has(right))).toEqual([]);
  const used = new Set(requests.map(({ right }) => right));
  for (const right of [
    'create pods',
    'delete pods',
    'list pods',
    'get pods/log',
    'create secrets',
    'patch networkpolicies',
    'patch poddisruptionbudgets',
  ])
    expect(used).toContain(right);
  // Its tokens are those of its pods, before and after the upgrade.
  expect(new Set(requests.map(({ pod }) => pod)).size).toBe(2);
  expect(requestsOf(world.plane, world.namespace, 'palestra')).toEqual([]);
});
