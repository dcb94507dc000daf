import type { KubernetesProvider } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand } from '../integration/hosting/docker-engine.world.ts';
import { call, linesUntil, soon } from '../integration/hosting/docker-instances.world.ts';
import { kubeProgram } from './support/control-plane.ts';
import { imageSpec, only, type ProviderWorld, removeAll, startPod, startProviderWorld } from './support/provider.world.ts';

describe.skipIf(kubeProgram === undefined || engineCommand === undefined)('instances in pods', () => {
  let world: ProviderWorld;
  let provider: KubernetesProvider;

  beforeAll(async () => {
    world = await startProviderWorld();
    provider = world.provider();
  });
  afterAll(() => world?.close());
  afterEach(() => removeAll(world));

  test('one starts, is listed, is found by everyone who wants it, and goes without a trace', async () => {
    const wanted = imageSpec(world.image, { secrets: { API_KEY: 'secret value' } });
    const [first, second] = await Promise.all([provider.ensure(wanted, soon()), world.provider().ensure(wanted, soon())]);
    expect([first, second]).toMatchObject([{ id: wanted.id }, { id: wanted.id }]);
    await startPod(provider, wanted);
    // As another process sees it after this one was lost.
    expect(await world.provider().list(soon())).toMatchObject([
      {
        id: wanted.id,
        versionId: 'version-1',
        state: 'running',
        endpoint: expect.stringMatching(/^http:\/\/10\.88\.\d+\.\d+:8000$/),
        exit: null,
        restarts: 0,
      },
    ]);
    expect(await world.provider({ installation: 'another' }).list(soon())).toEqual([]);
    expect(await provider.stats(wanted.id, soon())).toBeNull();
    await world.provider({ installation: 'another' }).remove(wanted.id, 5_000, soon());
    expect(await only(provider, wanted.id)).toBeDefined();
    await Promise.all([provider.remove(wanted.id, 5_000, soon()), world.provider().remove(wanted.id, 5_000, soon())]);
    expect(await world.pods()).toEqual([]);
    await expect.poll(() => world.secrets()).toEqual([]);
  });

  test('its code has no rights, and writes nothing but temporary files', async () => {
    const variables = { GREETING: 'a=b "c" $(PORT)' };
    const instance = await startPod(provider, imageSpec(world.image, { variables, secrets: { API_KEY: 'secret value' } }));
    const self = await call<{ uid: number; gid: number; status: string }>(instance, 'self');
    expect(self).toMatchObject({ uid: 65_534, gid: 65_534 });
    for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) expect(self.status).toMatch(new RegExp(`${set}:\\s*0+\\n`));
    expect(self.status).toMatch(/NoNewPrivs:\s*1\n/);
    expect(await call(instance, 'write', { file: '/app/x' })).toBe('EROFS');
    expect(await call(instance, 'write', { file: '/tmp/x' })).toBe('written');
    expect(await call(instance, 'read', { file: '/run/secrets/palestra/API_KEY' })).toBe('secret value');
    expect(await call(instance, 'write', { file: '/run/secrets/palestra/API_KEY' })).toBe('EROFS');
    expect(await call(instance, 'read', { file: '/var/run/secrets/kubernetes.io/serviceaccount/token' })).toBe('ENOENT');
    const seen = await call<Record<string, string>>(instance, 'env');
    expect(seen).toMatchObject({ ...variables, PALESTRA_SECRETS_DIR: '/run/secrets/palestra', PORT: '8000', HOME: '/tmp' });
    expect(JSON.stringify(seen)).not.toContain('secret value');
  });

  test('its log comes line by line, from any time, until it ends', async () => {
    const instance = await startPod(provider, imageSpec(world.image));
    await call(instance, 'say', { text: 'line #', times: 50 });
    await call(instance, 'say', { text: 'x'.repeat(20_000) });
    await call(instance, 'say', { text: 'last' });
    const all = await linesUntil(provider.logs(instance.id, null, soon()), 'last');
    const texts = all.map(({ text }) => text);
    // The two streams are two pipes: a line of one has no place among those of the other.
    expect(texts.slice(0, 3).toSorted()).toEqual(['a complaint', 'listening', 'listening soon']);
    expect(texts.filter((text) => text.startsWith('line '))).toEqual(Array.from({ length: 50 }, (_, index) => `line ${index}`));
    expect(texts.findLast((text) => text.startsWith('x'))?.length).toBe(8_192);

    // A reader that stopped anywhere continues with the next line.
    const middle = all.findIndex(({ text }) => text === 'line 20');
    const rest: string[] = [];
    const read = (async () => {
      for await (const { text } of provider.logs(instance.id, all[middle]!.at, soon())) rest.push(text);
    })();
    await expect.poll(() => rest.at(-1)).toBe('last');
    expect(rest).toEqual(texts.slice(middle + 1));
    await call(instance, 'say', { text: 'later' });
    await call(instance, 'exit', { code: 0 });
    await read;
    expect(rest.at(-1)).toBe('later');
    // It is there until the instance is removed.
    expect((await linesUntil(provider.logs(instance.id, null, soon()), 'never')).at(-1)?.text).toBe('later');
    await provider.remove(instance.id, 1_000, soon());
    expect(await linesUntil(provider.logs(instance.id, null, soon()), 'never')).toEqual([]);
  });

  test('how it ended is said, and nothing starts it again', async () => {
    const { image } = world;
    const [one, hungry] = await Promise.all([startPod(provider, imageSpec(image)), startPod(provider, imageSpec(image))]);
    await call(one, 'exit', { code: 3 });
    // Nobody answers any more.
    void call(hungry, 'eat').catch(() => null);
    await expect.poll(async () => (await provider.list(soon())).map(({ state }) => state)).toEqual(['exited', 'exited']);
    expect(await only(provider, one.id)).toMatchObject({ endpoint: null, exit: { code: 3, reason: expect.stringContaining('status 3') } });
    expect(await only(provider, hungry.id)).toMatchObject({
      exit: { code: 137, reason: expect.stringMatching(/more than its 128 MB of memory/) },
    });
    expect(await provider.ensure(imageSpec(image, { id: one.id }), soon())).toMatchObject({ state: 'exited', exit: { code: 3 } });
  });

  test('an image that is missing, a program that is missing, and a node that is missing are said', async () => {
    const missing = imageSpec('localhost/palestra-test/nothing:1');
    const broken = imageSpec(world.image, {});
    const program = { ...broken, artifact: { ...broken.artifact, command: ['/nothing'] } } as typeof broken;
    const huge = imageSpec(world.image, { resources: { ...broken.resources, cpus: 500 } });
    await Promise.all([missing, program, huge].map((spec) => provider.ensure(spec, soon())));
    await expect
      .poll(async () => (await only(provider, missing.id))?.exit?.reason)
      .toMatch(/cannot get the image \(ImagePullBackOff: .*nothing:1.*PALESTRA_KUBERNETES_PULL_SECRETS/);
    await expect.poll(async () => (await only(provider, program.id))?.exit?.reason).toMatch(/could not be started \(status 12[78]\)/);
    await expect
      .poll(async () => (await only(provider, huge.id))?.waiting)
      .toMatch(/^No node has room for it: 0\/1 nodes are available: .*cpu/);
    expect(await only(provider, huge.id)).toMatchObject({ state: 'starting', exit: null });
  });

  test('what somebody else deletes has ended', async () => {
    const instance = await startPod(provider, imageSpec(world.image));
    const { api } = world.plane;
    // Its sessions would be lost, so a node is not emptied of it.
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: `palestra-${instance.id}`, namespace: world.namespace },
    };
    const path = `/api/v1/namespaces/${world.namespace}/pods/palestra-${instance.id}`;
    await expect.poll(() => api.post(`${path}/eviction`, eviction).catch(({ status }) => status)).toBe(429);
    await api.delete(path);
    await expect.poll(async () => (await only(provider, instance.id)) ?? null).toBeNull();
  });

  test('an image is built by its name: the digest that a node has', async () => {
    const request = {
      deployId: newUuid(),
      sourceDigest: 'sha256:1',
      source: { kind: 'image', image: world.image, port: 8_000 },
      buildArguments: {},
      limits: { seconds: 60, memoryMb: 1_024, maxBytes: 2 ** 30, network: false },
    } as const;
    const lines: string[] = [];
    const artifact = await provider.build(request, ({ text }) => lines.push(text), soon());
    expect(artifact).toMatchObject({ kind: 'image', digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), port: 8_000 });
    expect(lines.at(-1)).toBe(`${world.image} is ${artifact.digest}`);
    await startPod(provider, imageSpec((artifact as { image: string }).image));
    const failing = (source: object, signal = soon()) => provider.build({ ...request, ...source } as typeof request, () => {}, signal);
    const missing = { source: { ...request.source, image: 'localhost/palestra-test/nothing:1' } };
    await expect(failing(missing)).rejects.toMatchObject({ code: 'build_failed', message: expect.stringContaining('nothing:1') });
    await expect(failing({ source: { ...request.source, port: null } })).rejects.toMatchObject({ code: 'source_invalid' });
    await expect(failing(missing, AbortSignal.timeout(300))).rejects.toMatchObject({ code: 'build_cancelled' });
    await provider.prune(new Set(), soon());
    expect((await world.pods()).filter(({ metadata }) => metadata.name.includes('image'))).toEqual([]);
  });
});
