import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PalestraClient } from '@palestra/client';
import { type BuildRequest, detectPlan } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { LIMITS, soon } from '../integration/hosting/docker-instances.world.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { type Cluster, startCluster } from './support/cluster.ts';
import { kubeProgram } from './support/control-plane.ts';
import { documentedRules } from './support/documented-role.ts';
import { buildImage } from './support/provider.world.ts';

const ENVIRONMENT = `
import { defineEnvironment, tool, z } from '@palestra/environment-kit';
console.log('version VERSION starts');
export default defineEnvironment({
  name: 'guess',
  splits: ['train'],
  tasks: () => [{ secret: 7 }],
  prompt: () => 'Guess.',
  tools: { guess: tool({ description: 'Guess.', input: z.object({ number: z.int() }), run: () => ({ content: 'version VERSION', reward: 1 }) }) },
});
`;

describe.skipIf(kubeProgram === undefined || engineCommand === undefined)('the service with instances in pods', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-k8s-'));
  let cluster: Cluster;
  let namespace: string;
  let palestra: Palestra;
  let client: PalestraClient;

  beforeAll(async () => {
    cluster = await startCluster();
    const { plane } = cluster;
    namespace = await plane.namespace();
    const kubeconfig = path.join(folder, 'kubeconfig');
    writeFileSync(kubeconfig, plane.config(await plane.account(namespace, 'palestra', documentedRules()), namespace));
    palestra = await startPalestra({
      env: {
        PALESTRA_HOSTING: 'kubernetes',
        KUBECONFIG: kubeconfig,
        PALESTRA_KUBERNETES_CALLER_NETWORKS: '10.88.0.1',
        PALESTRA_KUBERNETES_NETWORK_POLICY: '1',
      },
    });
    client = new PalestraClient({ url: palestra.url, apiKey: palestra.apiKey });
  });
  afterAll(async () => {
    await client?.close();
    await palestra?.stop();
    await cluster?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Images in which the kit serves two versions of the environment. */
  async function imagesOf(): Promise<[string, string]> {
    const source = path.join(folder, 'guess');
    mkdirSync(source);
    writeFileSync(path.join(source, 'environment.ts'), ENVIRONMENT.replaceAll('VERSION', '1'));
    const { plan } = await detectPlan(source);
    const request: BuildRequest = {
      deployId: newUuid(),
      sourceDigest: `sha256:${newUuid()}`,
      source: { kind: 'folder', folder: source, plan },
      buildArguments: {},
      limits: LIMITS,
    };
    const artifact = await cluster.engine.provider().build(request, () => {}, soon());
    const first = `localhost/palestra-test/guess-${process.pid}:1`;
    cluster.engine.ask('tag', (artifact as { image: string }).image.replace('sha256:', ''), first);
    const second = buildImage(cluster.engine, 'guess-2', `FROM ${first}\nCOPY environment.ts /app/environment.ts\n`, {
      'environment.ts': ENVIRONMENT.replaceAll('VERSION', '2'),
    });
    return [first, second];
  }

  const pods = async () =>
    (await cluster.plane.api.get<{ items: any[] }>(`/api/v1/namespaces/${namespace}/pods`)).items.filter(
      ({ metadata }) => !metadata.deletionTimestamp,
    );

  async function deploy(image: string): Promise<void> {
    const name = `${palestra.namespace}/guess`;
    const settings = { memory_mb: 256, idle_s: 1, egress: 'none' as const };
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
    const images = await imagesOf();
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
});
