import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { PalestraClient } from '@palestra/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLI } from '../conformance/support/foreground.ts';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { buildkitPrograms, makeBuilderImage } from './support/buildkit-image.ts';
import { type Cluster, startCluster } from './support/cluster.ts';
import { installAgentSandbox } from './support/agent-sandbox-crds.ts';
import { FakeAgentSandboxController } from './support/fake-agent-sandbox-controller.ts';
import { kubeProgram } from './support/control-plane.ts';
import { agentSandboxRules } from './support/documented-role.ts';
import { buildGuessImages } from './support/guess-images.ts';
import { TestRegistry } from './support/registry.ts';

const isComplete = kubeProgram !== undefined && engineCommand !== undefined && buildkitPrograms !== undefined;

describe.skipIf(!isComplete)('the service with instances in pods', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-k8s-'));
  let cluster: Cluster;
  /** A FAKE: the real controller of agent-sandbox cannot be built here. */
  let controller: FakeAgentSandboxController;
  let registry: TestRegistry;
  let images: [string, string];
  let namespace: string;
  let palestra: Palestra;
  let client: PalestraClient;

  beforeAll(async () => {
    cluster = await startCluster(installAgentSandbox);
    const { plane, engine } = cluster;
    registry = await TestRegistry.start(engine);
    controller = FakeAgentSandboxController.start(plane.api);
    namespace = await plane.namespace();
    const kubeconfig = path.join(folder, 'kubeconfig');
    writeFileSync(kubeconfig, plane.config(await plane.account(namespace, 'palestra', agentSandboxRules()), namespace));
    await plane.api.post(`/api/v1/namespaces/${namespace}/secrets`, registry.secret('push'));
    palestra = await startPalestra({
      env: {
        PALESTRA_HOSTING: 'kubernetes',
        KUBECONFIG: kubeconfig,
        PALESTRA_KUBERNETES_CALLER_NETWORKS: '10.88.0.1',
        PALESTRA_KUBERNETES_NETWORK_POLICY: '1',
        PALESTRA_KUBERNETES_REGISTRY: `${registry.host}/acme`,
        PALESTRA_KUBERNETES_REGISTRY_SECRET: 'push',
        PALESTRA_KUBERNETES_BUILDER_IMAGE: makeBuilderImage(engine, registry.host),
        PALESTRA_BASE_IMAGE_NODE: registry.push(engine.image, 'base/node:1'),
      },
    });
    client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
    images = await buildGuessImages(engine);
  });
  afterAll(async () => {
    await client?.close();
    await palestra?.stop();
    await controller?.close();
    await registry?.stop();
    await cluster?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const pods = async () =>
    (await cluster.plane.api.get<{ items: any[] }>(`/api/v1/namespaces/${namespace}/pods`)).items.filter(
      ({ metadata }) => !metadata.deletionTimestamp,
    );

  async function deploy(image: string, more: object = {}, name = `${palestra.namespace}/guess`): Promise<void> {
    const settings = { memory_mb: 256, idle_s: 1, egress: 'none' as const, ...more };
    const { id } = await client.hosting.deploy(name, { source: { kind: 'image', image, port: 8_000 }, settings, create: true });
    await expect.poll(async () => (await client.hosting.getDeploy(id)).ended_at).not.toBeNull();
    expect(await client.hosting.getDeploy(id)).toMatchObject({ state: 'ready', error: null });
  }

  async function play(environment = `${palestra.namespace}/guess`): Promise<string> {
    await using session = await client.session({ environment, split: 'train', index: 0 });
    const { blocks } = await session.call('guess', { number: 1 });
    return blocks.map((block) => ('text' in block ? block.text : '')).join('');
  }

  test('an image is deployed, serves sessions, starts again from none, and is rolled back', async () => {
    await deploy(images[0]);
    expect(await play()).toBe('version 1');
    await deploy(images[1]);
    expect(await play()).toBe('version 2');
    const name = `${palestra.namespace}/guess`;
    await client.hosting.rollback(name, 'stable');
    expect(await play()).toBe('version 1');

    // Nothing runs that nobody uses, and the next session starts it.
    await expect.poll(pods).toEqual([]);
    expect(await play()).toBe('version 1');
    const [pod] = await pods();
    expect(pod.spec.containers[0].image).toMatch(/@sha256:[0-9a-f]{64}$/);
    expect(pod.metadata.labels).toMatchObject({ 'palestra.dev/egress': 'none', 'palestra.dev/role': 'server' });
  }, 300_000);

  test("an author's folder is built in the cluster, and its next version faster", async () => {
    const env = { ...process.env, PALESTRA_URL: palestra.url, PALESTRA_API_KEY: palestra.apiKey, NO_COLOR: '1' };
    const run = (...args: string[]) => promisify(execFile)(process.execPath, [CLI, 'env', ...args], { cwd: folder, env });
    const say = async (environment: string) => {
      await using session = await client.session({ environment, split: 'test', index: 1 });
      const { blocks } = await session.call('guess', { number: 999 });
      return blocks.map((block) => ('text' in block ? block.text : '')).join('');
    };
    const environment = `${palestra.namespace}/scaffold`;
    await run('init', 'scaffold');
    const started = performance.now();
    const first = await run('deploy', 'scaffold', '--idle', '1');
    expect(first.stdout).toBe(`${environment}@1\n`);
    expect(await say(environment)).toBe('Lower. 9 guesses left.');
    console.log(`deploy of the scaffold until its first call ${Math.round(performance.now() - started)} ms (BuildKit)`);
    const module = path.join(folder, 'scaffold', 'environment.ts');
    writeFileSync(module, readFileSync(module, 'utf8').replaceAll('guesses left', 'tries left'));
    const second = await run('deploy', 'scaffold');
    expect(second.stdout).toBe(`${environment}@2\n`);
    expect(second.stderr).toContain('CACHED');
    expect(await say(environment)).toBe('Lower. 9 tries left.');
    await client.hosting.rollback(environment, 'stable');
    expect(await say(environment)).toBe('Lower. 9 guesses left.');
    await expect.poll(pods).toEqual([]);
  }, 300_000);

  test('with concurrency 1 each session has a pod of its own from the warm pool, and nothing stays of them', async () => {
    const environment = `${palestra.namespace}/single`;
    const started = performance.now();
    await deploy(images[0], { concurrency: 1, min_warm: 1, max: 3 }, environment);
    const deployMs = performance.now() - started;
    const claimed = async () => (await pods()).filter(({ metadata }) => metadata.labels['sandbox.users.io/palestra-instance']);
    const uids = (all: any[]) => all.map(({ metadata }) => metadata.uid);
    const unused = async () => {
      // Not those of the test before.
      const all = (await pods()).filter(({ metadata }) => metadata.labels['palestra.dev/role'] === 'warm');
      const [pod] = all;
      const isWarm =
        all.length === 1 && pod.status.containerStatuses?.[0].ready && !pod.metadata.labels['sandbox.users.io/palestra-instance'];
      return isWarm ? pod : null;
    };
    const open = () => client.session({ environment, split: 'train', index: 0 });
    // That of the test is gone, and one waits.
    await expect.poll(unused).not.toBeNull();
    const warm = await unused();

    const before = performance.now();
    const first = await open();
    await first.call('guess', { number: 1 });
    const warmMs = performance.now() - before;
    expect(uids(await claimed())).toEqual([warm.metadata.uid]);
    const [second, third] = await Promise.all([open(), open()]);
    expect(new Set(uids(await claimed())).size).toBe(3);
    // No more than `max`, and no session gets a used pod.
    await first.close();
    await expect.poll(async () => uids(await pods()).includes(warm.metadata.uid)).toBe(false);
    await Promise.all([second.close(), third.close()]);
    await expect.poll(unused).not.toBeNull();

    // It dies in the middle of a session.
    const session = await open();
    const used = uids(await claimed());
    expect(used).toHaveLength(1);
    await palestra.kill();
    await palestra.restart();
    await session.close().catch(() => {});
    await expect.poll(async () => uids(await pods()).includes(used[0])).toBe(false);
    await expect.poll(unused).not.toBeNull();
    console.log(`deploy ${Math.round(deployMs)} ms, first session on a warm pod ${Math.round(warmMs)} ms (fake controller)`);

    const headers = { authorization: `Bearer ${palestra.apiKey}` };
    expect((await fetch(`${palestra.url}/v1/environments/${environment}`, { method: 'DELETE', headers })).ok).toBe(true);
    await expect.poll(pods).toEqual([]);
    const kinds = ['sandboxclaims', 'sandboxtemplates', 'sandboxwarmpools'];
    for (const kind of kinds) {
      const path = `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${namespace}/${kind}`;
      await expect.poll(async () => (await cluster.plane.api.get<{ items: any[] }>(path)).items).toEqual([]);
    }
  }, 300_000);
});
