import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BuildRequest, KubernetesProvider, LogLine } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { soon } from '../integration/hosting/docker-instances.world.ts';
import { makeBuilderImage } from './support/builder-image.ts';
import { kubeProgram } from './support/control-plane.ts';
import { type ProviderWorld, startProviderWorld } from './support/provider.world.ts';

const REGISTRY = 'registry.example/acme';

/** With a stand-in for BuildKit: support/builder-image.ts. */
describe.skipIf(kubeProgram === undefined || engineCommand === undefined)('folders are built by a Job', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-folder-'));
  let world: ProviderWorld;
  let provider: KubernetesProvider;

  beforeAll(async () => {
    world = await startProviderWorld();
    const builds = { registry: REGISTRY, registryNetworks: ['10.9.0.0/16'], images: {}, pythonPackage: null };
    provider = world.provider({ builds: { ...builds, registrySecret: 'push', builderImage: makeBuilderImage(world.engine) } });
    const data = { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') };
    const secret = { metadata: { name: 'push' }, type: 'kubernetes.io/dockerconfigjson', data };
    await world.plane.api.post(`/api/v1/namespaces/${world.namespace}/secrets`, secret);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await world?.close();
  });
  // A build that ends in any way leaves nothing.
  afterEach(async () => {
    const left = [...(await jobs()), ...(await world.pods())].map(({ metadata }) => metadata.name);
    if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
  });

  const jobs = async () => (await world.plane.api.get<{ items: any[] }>(`/apis/batch/v1/namespaces/${world.namespace}/jobs`)).items;

  function requestOf(dockerfile: string, given: Partial<BuildRequest['limits']> = {}): BuildRequest {
    writeFileSync(path.join(folder, 'Dockerfile'), dockerfile);
    return {
      deployId: newUuid(),
      sourceDigest: 'sha256:1',
      source: { kind: 'folder', folder, plan: { kind: 'dockerfile', dockerfile: 'Dockerfile', port: null, variables: {} } },
      buildArguments: { GREETING: '$(HOME) x' },
      cacheKey: 'environment',
      limits: { seconds: 60, memoryMb: 256, maxBytes: 2 ** 30, network: true, ...given },
    };
  }

  const build = (request: BuildRequest, onLine: (line: LogLine) => void = () => {}, signal = soon()) =>
    provider.build(request, onLine, signal);

  test('the whole folder arrives, the log comes as it is written, and the image is known by the digest that was pushed', async () => {
    const bytes = randomBytes(3 * 2 ** 20 + 17);
    writeFileSync(path.join(folder, 'large file'), bytes);
    const lines: string[] = [];
    const request = requestOf('FROM base\nRUN hash large file\nEXPOSE 8000\n');
    const artifact = await build(request, ({ text }) => lines.push(text));
    const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
    expect(artifact).toEqual({ kind: 'image', digest, image: `${REGISTRY}/environments@${artifact.digest}`, port: 8_000 });
    expect(lines.find((line) => line.startsWith('#4 0.10'))).toContain(createHash('sha256').update(bytes).digest('hex'));
    expect(lines).toContain('#3 0.02 credentials {"auths":{}}');
    expect(lines.join('\n')).not.toContain('not found');
    const said = lines.find((line) => line.includes('arguments'));
    expect(said).toContain('build-arg:GREETING=$(HOME) x');
    expect(said).toMatch(/name=registry\.example\/acme\/environments:build-[0-9a-f]{40},push=true/);
    expect(said).toMatch(/--export-cache=type=registry,ref=registry\.example\/acme\/environments:cache-[0-9a-f]{40}/);
    rmSync(path.join(folder, 'large file'));
  });

  test('a failed step is named with the line that says why', async () => {
    const lines: LogLine[] = [];
    const failing = build(requestOf('FROM base\nRUN fail\nEXPOSE 8000\n'), (line) => lines.push(line));
    const error = await failing.catch((reason: unknown) => reason as { code: string; message: string; line: number });
    expect(error).toMatchObject({
      code: 'build_failed',
      message: 'The build failed in the step 2/2: RUN fail: process "fail" did not complete successfully: exit code: 1',
    });
    expect(lines[(error as { line: number }).line - 1]?.text).toContain('fatal: nothing works');
    await expect(build(requestOf('FROM base\nRUN refuse\nEXPOSE 8000\n'))).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/^The registry did not take the image: failed to push .*401.*PALESTRA_KUBERNETES_REGISTRY_SECRET/),
    });
    await expect(build(requestOf('FROM base\nRUN kill\nEXPOSE 8000\n'))).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('a build has 256 MB'),
    });
  });

  test('its Job has limits, no rights and its own network, shows its lines while it runs, and goes with the build', async () => {
    const stop = new AbortController();
    const lines: string[] = [];
    const request = requestOf('FROM base\nRUN wait\nEXPOSE 8000\n');
    const building = build(request, ({ text }) => lines.push(text), AbortSignal.any([soon(), stop.signal]));
    building.catch(() => {});
    await expect.poll(() => lines.at(-1)).toBe('#4 0.10 waiting');
    const [job] = await jobs();
    expect(job).toMatchObject({
      metadata: {
        name: `palestra-build-${request.deployId}`,
        labels: { 'palestra.dev/installation': world.installation, 'palestra.dev/deploy': request.deployId },
      },
      spec: { backoffLimit: 0, activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 600 },
    });
    const policies = `/apis/networking.k8s.io/v1/namespaces/${world.namespace}/networkpolicies`;
    const policy = await world.plane.api.get(`${policies}/palestra-${world.installation}-build`);
    expect(policy.spec.podSelector.matchLabels).toEqual({
      'palestra.dev/installation': world.installation,
      'palestra.dev/egress': 'build',
    });
    expect((await world.pods())[0].metadata.labels).toMatchObject(policy.spec.podSelector.matchLabels);
    expect(policy.spec.ingress).toBeUndefined();
    expect(policy.spec.egress.at(-1)).toEqual({ to: [{ ipBlock: { cidr: '10.9.0.0/16' } }] });
    stop.abort();
    await expect(building).rejects.toMatchObject({ code: 'build_cancelled' });
  });

  test('a build that takes too long is stopped, and what a dead process left is replaced', async () => {
    await expect(build(requestOf('FROM base\nRUN wait\nEXPOSE 8000\n', { seconds: 6 }))).rejects.toMatchObject({
      code: 'build_timeout',
      message: 'The build took longer than 6 s and was stopped.',
    });
    const request = requestOf('FROM base\nRUN hash Dockerfile\nEXPOSE 8000\n');
    const left = { name: `palestra-build-${request.deployId}` };
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'build', image: 'localhost/palestra-test/nothing:1' }] } };
    await world.plane.api.post(`/apis/batch/v1/namespaces/${world.namespace}/jobs`, { metadata: left, spec: { template } });
    expect(await build(request)).toMatchObject({ kind: 'image' });
  });

  test('what cannot be built is refused before', async () => {
    const request = requestOf('FROM base\n');
    const without = world.provider();
    expect(await without.capabilities(soon())).toMatchObject({ builds: false });
    expect(await provider.capabilities(soon())).toMatchObject({ builds: true });
    await expect(without.build(request, () => {}, soon())).rejects.toMatchObject({
      code: 'hosting_unsupported',
      message: expect.stringContaining('PALESTRA_KUBERNETES_REGISTRY'),
    });
    await expect(build(request)).rejects.toMatchObject({ code: 'source_invalid', message: expect.stringContaining('exposes no port') });
    const image = { kind: 'image', image: `${REGISTRY}/environments:latest`, port: 8_000 } as const;
    await expect(build({ ...request, source: image })).rejects.toMatchObject({ code: 'source_invalid' });
  });
});
