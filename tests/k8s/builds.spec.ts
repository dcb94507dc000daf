import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BuildRequest, HostingError, KubernetesProvider, LogLine } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { call, SERVER, soon } from '../integration/hosting/docker-instances.world.ts';
import { buildkitPrograms, makeBuilderImage } from './support/buildkit-image.ts';
import { kubeProgram, until } from './support/control-plane.ts';
import { imageSpec, type ProviderWorld, removeAll, startPod, startProviderWorld } from './support/provider.world.ts';
import { REGISTRY_PASSWORD, TestRegistry } from './support/registry.ts';

const isComplete = kubeProgram !== undefined && engineCommand !== undefined && buildkitPrograms !== undefined;

describe.skipIf(!isComplete)('folders are built by a Job with BuildKit in rootless mode', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-folder-'));
  let world: ProviderWorld;
  let registry: TestRegistry;
  let repository: string;
  let provider: KubernetesProvider;
  /** The credentials of its Secret are wrong. */
  let stranger: KubernetesProvider;
  /** First lines of a Dockerfile whose image has Node.js. */
  let base: string;

  beforeAll(async () => {
    world = await startProviderWorld();
    registry = await TestRegistry.start(world.engine);
    repository = `${registry.host}/acme/environments`;
    base = `FROM ${registry.push(world.engine.image, 'base/node:1')}\nARG GREETING\nEXPOSE 8000\n`;
    const builderImage = makeBuilderImage(world.engine, registry.host);
    const builds = { registry: `${registry.host}/acme`, registryNetworks: ['10.9.0.0/16'], images: {}, pythonPackage: null, builderImage };
    provider = world.provider({ builds: { ...builds, registrySecret: 'push' } });
    stranger = world.provider({ builds: { ...builds, registrySecret: 'wrong' } });
    for (const secret of [registry.secret('push'), registry.secret('wrong', 'another')])
      await world.plane.api.post(`/api/v1/namespaces/${world.namespace}/secrets`, secret);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await registry?.stop();
    await world?.close();
  });
  // A build that ends in any way leaves nothing. A busy cluster removes its Job a moment later.
  afterEach(async () => {
    await until('an empty namespace', async () => [...(await jobs()), ...(await world.pods())].length === 0);
  });

  const jobs = async () => (await world.plane.api.get<{ items: any[] }>(`/apis/batch/v1/namespaces/${world.namespace}/jobs`)).items;

  /** An instruction that runs a program of Node.js. */
  const run = (program: string) => `RUN ${JSON.stringify(['node', '-e', program])}\n`;

  function requestOf(dockerfile: string, given: Partial<BuildRequest['limits']> = {}): BuildRequest {
    writeFileSync(path.join(folder, 'Dockerfile'), dockerfile);
    return {
      deployId: newUuid(),
      sourceDigest: 'sha256:1',
      source: { kind: 'folder', folder, plan: { kind: 'dockerfile', dockerfile: 'Dockerfile', port: null, variables: {} } },
      buildArguments: { GREETING: '$(HOME) x' },
      cacheKey: newUuid(),
      limits: { seconds: 100, memoryMb: 512, maxBytes: 2 ** 30, network: true, ...given },
    };
  }

  /** What it is and what its log says. */
  async function build(request: BuildRequest, by = provider) {
    const lines: string[] = [];
    const artifact = await by.build(request, ({ text }) => lines.push(text), soon());
    return { artifact, log: lines.join('\n') };
  }

  /** Why it failed, and the line of its log that says so. */
  async function failureOf(request: BuildRequest, by = provider) {
    const lines: string[] = [];
    const error = await by
      .build(request, ({ text }) => lines.push(text), soon())
      .then(
        () => Promise.reject(new Error('it was built')),
        (reason: HostingError) => reason,
      );
    return { code: error.code, message: error.message, said: lines[(error.line ?? 0) - 1] };
  }

  test('the whole folder arrives, the image is known by the digest that was pushed, and nodes pull and run it', async () => {
    const bytes = randomBytes(3 * 2 ** 20 + 17);
    writeFileSync(path.join(folder, 'large file'), bytes);
    writeFileSync(path.join(folder, 'server.mjs'), SERVER);
    const hash = "console.log(require('crypto').createHash('sha256').update(require('fs').readFileSync('/app/large file')).digest('hex'))";
    const steps = `${run(hash)}${run('console.log(process.env.GREETING)')}CMD ["node", "/app/server.mjs"]\n`;
    const request = requestOf(`${base}COPY . /app\n${steps}`);
    const { artifact, log } = await build(request);
    const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
    expect(artifact).toEqual({ kind: 'image', digest, image: `${repository}@${artifact.digest}`, port: 8_000 });
    expect(log).toContain(` ${createHash('sha256').update(bytes).digest('hex')}\n`);
    expect(log).toContain(' $(HOME) x\n');
    expect(log).not.toMatch(/not found|Unauthorized/);
    const manifest = await registry.request(`/v2/acme/environments/manifests/${artifact.digest}`, {
      accept: 'application/vnd.oci.image.manifest.v1+json',
    });
    expect(
      `sha256:${createHash('sha256')
        .update(await manifest.bytes())
        .digest('hex')}`,
    ).toBe(artifact.digest);

    const instance = await startPod(provider, imageSpec('', { artifact }));
    expect(await call(instance, 'echo', { is: 'built' })).toEqual({ is: 'built' });
    await removeAll({ provider: () => provider, pods: world.pods });

    // Later builds of the environment take what did not change from the registry, those of other environments do not.
    const again = await build({ ...request, deployId: newUuid() });
    expect(again.log.match(/CACHED/g)?.length).toBeGreaterThanOrEqual(3);
    expect(again.log).not.toContain('$(HOME) x\n');
    const elsewhere = await build({ ...request, deployId: newUuid(), cacheKey: newUuid() });
    expect(elsewhere.log).toContain(' $(HOME) x\n');
    rmSync(path.join(folder, 'large file'));
  });

  test('a failed step is named with the line that says why', async () => {
    const program = "console.error('fatal: nothing works'); console.log('the end'); process.exitCode = 1";
    const failure = await failureOf(requestOf(base + run(program)));
    expect(failure).toMatchObject({ code: 'build_failed', said: expect.stringMatching(/^#\d+ \d+\.\d+ fatal: nothing works$/) });
    expect(failure.message).toMatch(/^The build failed in the step 2\/2: RUN \["node".*did not complete successfully: exit code: 1$/);
    expect(await failureOf(requestOf(`FROM ${registry.host}/base/missing:1\nEXPOSE 8000\n`))).toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/base\/missing:1.*not found/),
    });
    expect(await failureOf(requestOf('FROM scratch\nCOPY Dockerfile /\nEXPOSE 8000\n'), stranger)).toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/^The registry did not take the image: .*PALESTRA_KUBERNETES_REGISTRY_SECRET/),
    });
    const eat = 'const all = []; while (true) all.push(Buffer.alloc(2 ** 20, 1))';
    expect(await failureOf(requestOf(base + run(eat)))).toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('a build has 512 MB'),
    });
  });

  test('a step has no credentials, no rights over the builder, and no network where a build has none', async () => {
    const program = `
      const fs = require('fs');
      const read = (file) => { try { return fs.readFileSync(file, 'utf8'); } catch (error) { return error.code; } };
      const processes = fs.readdirSync('/proc').filter((name) => Number(name) > 0 && Number(name) !== process.pid);
      for (const id of processes) {
        console.log('process', id, read('/proc/' + id + '/cmdline').slice(0, 60).replaceAll('\\0', ' '));
        for (const file of ['environ', 'root/registry/config.json', 'cwd/registry/config.json']) console.log('read', file, read('/proc/' + id + '/' + file));
      }
      for (const file of ['/registry/config.json', '/var/run/secrets/kubernetes.io/serviceaccount/token']) console.log('read', file, read(file));
      console.log('addresses', Object.keys(require('os').networkInterfaces()));
      console.log(fs.readFileSync('/proc/self/status', 'utf8').match(/CapEff.*/)[0]);`;
    const lines = (await build(requestOf(base + run(program)))).log.split('\n').map((line) => line.replace(/^#\d+ \d+\.\d+ /, ''));
    // It does see them, so the attack was one.
    expect(lines.filter((line) => /^process .*buildkitd/.test(line))).not.toEqual([]);
    const read = lines.filter((line) => line.startsWith('read '));
    expect(read.length).toBeGreaterThan(5);
    expect(read.filter((line) => !/ (?:EACCES|ENOENT|EPERM)$/.test(line))).toEqual([]);
    expect(lines.join('\n')).not.toContain(Buffer.from(`palestra:${REGISTRY_PASSWORD}`).toString('base64'));
    expect(lines.some((line) => line.startsWith('addresses') && line.includes('eth0'))).toBe(true);

    const closed = await build(requestOf(base + run(program), { network: false }));
    expect(closed.log).toMatch(/addresses \[ 'lo' \]/);
  });

  test('its Job has limits, no rights and its own network, shows its lines while it runs, and goes with the build', async () => {
    const stop = new AbortController();
    const lines: LogLine[] = [];
    const request = requestOf(base + run("console.log('waiting'); setTimeout(() => {}, 6e5)"));
    const building = provider.build(request, (line) => lines.push(line), AbortSignal.any([soon(), stop.signal]));
    building.catch(() => {});
    await expect.poll(() => lines.at(-1)?.text).toMatch(/^#\d+ \d+\.\d+ waiting$/);
    const [job] = await jobs();
    expect(job).toMatchObject({
      metadata: {
        name: `palestra-build-${request.deployId}`,
        labels: { 'palestra.dev/installation': world.installation, 'palestra.dev/deploy': request.deployId },
      },
      spec: { backoffLimit: 0, activeDeadlineSeconds: 100, ttlSecondsAfterFinished: 600 },
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
    expect(await failureOf(requestOf(base + run('setTimeout(() => {}, 6e5)'), { seconds: 8 }))).toMatchObject({
      code: 'build_timeout',
      message: 'The build took longer than 8 s and was stopped.',
    });
    const request = requestOf('FROM scratch\nCOPY Dockerfile /\nEXPOSE 8000\n');
    const left = { name: `palestra-build-${request.deployId}` };
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'build', image: 'localhost/palestra-test/nothing:1' }] } };
    await world.plane.api.post(`/apis/batch/v1/namespaces/${world.namespace}/jobs`, { metadata: left, spec: { template } });
    expect((await build(request)).artifact).toMatchObject({ kind: 'image' });
  });

  test('what cannot be built is refused before', async () => {
    const request = requestOf('FROM scratch\n');
    const without = world.provider();
    expect(await without.capabilities(soon())).toMatchObject({ builds: false });
    expect(await provider.capabilities(soon())).toMatchObject({ builds: true });
    expect(await failureOf(request, without)).toMatchObject({
      code: 'hosting_unsupported',
      message: expect.stringContaining('PALESTRA_KUBERNETES_REGISTRY'),
    });
    expect(await failureOf(request)).toMatchObject({ code: 'source_invalid', message: expect.stringContaining('exposes no port') });
    const image = { kind: 'image', image: `${repository}:latest`, port: 8_000 } as const;
    expect(await failureOf({ ...request, source: image })).toMatchObject({ code: 'source_invalid' });
  });
});
