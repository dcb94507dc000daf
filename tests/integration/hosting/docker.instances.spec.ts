import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Artifact, DockerProvider, InstanceSpec } from '@palestra/hosting';
import { newUuid, splitCredentials } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand, TestEngine } from './docker-engine.world.ts';
import { buildServer, call, connects, linesUntil, removeAll, soon, specOf, startInstance } from './docker-instances.world.ts';

describe.skipIf(engineCommand === undefined)('instances in containers', () => {
  let engine: TestEngine;
  let provider: DockerProvider;
  let artifact: Artifact;

  beforeAll(async () => {
    engine = await TestEngine.start();
    provider = engine.provider();
    artifact = await buildServer(engine, provider);
  });
  afterAll(() => engine?.close());
  afterEach(() => removeAll(engine, provider));

  const spec = (given: Partial<InstanceSpec> = {}) => specOf(artifact, given);
  const start = (given: Partial<InstanceSpec> = {}) => startInstance(provider, spec(given));
  const only = async (id: string) => (await provider.list(soon())).find((one) => one.id === id);

  test('one starts, is listed, is found by everyone who wants it, and goes without a trace', async () => {
    const wanted = spec();
    const [first, second] = await Promise.all([provider.ensure(wanted, soon()), engine.provider().ensure(wanted, soon())]);
    expect(second.id).toBe(first.id);
    expect(await provider.ensure(wanted, soon())).toMatchObject({
      state: 'running',
      endpoint: expect.stringMatching(/^http:\/\/palestra:[\w-]{32}@127\.0\.0\.1:\d+$/),
    });
    expect(await provider.list(soon())).toMatchObject([
      { id: wanted.id, versionId: 'version-1', state: 'running', exit: null, restarts: 0 },
    ]);
    expect(await engine.provider({ installation: 'another' }).list(soon())).toEqual([]);
    await provider.remove(wanted.id, 5_000, soon());
    await provider.remove(wanted.id, 5_000, soon());
    expect(engine.leftovers()).toEqual([]);
  });

  test('its code has no rights, and writes nothing but temporary files', async () => {
    const instance = await start({ variables: { GREETING: 'a=b "c"' }, secrets: { API_KEY: 'secret value' } });
    const self = await call<{ uid: number; gid: number; status: string }>(instance, 'self');
    expect(self).toMatchObject({ uid: 65_534, gid: 65_534 });
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) expect(self.status).toMatch(new RegExp(`${set}:\\s*0+\\n`));
    expect(self.status).toMatch(/NoNewPrivs:\s*1\n/);
    expect(self.status).toMatch(/Seccomp:\s*2\n/);
    expect(await call(instance, 'write', { file: '/app/x' })).toBe('EROFS');
    expect(await call(instance, 'write', { file: '/tmp/x', megabytes: 4 })).toBe('written');
    expect(await call(instance, 'write', { file: '/tmp/x', megabytes: 9 })).toBe('ENOSPC');
    expect(await call(instance, 'write', { file: '/var/tmp/x', megabytes: 20 })).toBe('ENOSPC');
    expect(await call(instance, 'read', { file: '/run/secrets/palestra/API_KEY' })).toBe('secret value');
    expect(await call(instance, 'write', { file: '/run/secrets/palestra/API_KEY' })).toBe('EROFS');
    const variables = await call<Record<string, string>>(instance, 'env');
    expect(variables).toMatchObject({ GREETING: 'a=b "c"', PALESTRA_SECRETS_DIR: '/run/secrets/palestra', PORT: '8000' });
    expect(JSON.stringify(variables)).not.toContain('secret value');
    const settings = JSON.parse(engine.ask('inspect', '-f', '{{json .HostConfig}}', `palestra-${instance.id}`));
    expect(settings).toMatchObject({ Memory: 128 * 2 ** 20, MemorySwap: 128 * 2 ** 20, NanoCpus: 1e9, PidsLimit: 64, Privileged: false });
    expect(settings.LogConfig.Size).toBe('10MB');
  });

  test('it reaches nobody: no other instance, nothing of this machine, no network', async () => {
    const service = createServer((socket) => socket.on('error', () => {}).end('host')).listen(0, '0.0.0.0');
    await once(service, 'listening');
    const { port } = service.address() as AddressInfo;
    try {
      const [instance, other] = await Promise.all([start(), start()]);
      const addressesOf = (name: string) =>
        engine.ask('inspect', '-f', '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}', name).split(/\s+/);
      const host = Object.values(networkInterfaces()).flatMap((all) =>
        all!.filter(({ family }) => family === 'IPv4').map(({ address }) => address),
      );
      const others = ['', '-gateway'].flatMap((part) => addressesOf(`palestra-${other.id}${part}`));
      expect(others).toHaveLength(3);
      expect(host.length).toBeGreaterThan(1);
      // This service reaches what the instance must not.
      for (const address of host) expect(await connects(address, port), address).toBe(true);
      const targets = [
        ...host.map((address) => [address, port] as const),
        ...others.flatMap((address) => [8_000, 8_080].map((its) => [address, its] as const)),
        // Metadata of clouds, and an address of the Internet that nobody has.
        ...['169.254.169.254', '203.0.113.1'].map((address) => [address, 80] as const),
      ];
      for (const [address, its] of targets) {
        const found = await call(instance, 'connect', { host: address, port: its });
        expect(found, address).toMatch(address.startsWith('127.') ? /^ECONNREFUSED$/ : /^(?:ENETUNREACH|EHOSTUNREACH)$/);
      }
      for (const name of ['example.com', 'host.containers.internal.']) {
        expect(await call(instance, 'resolve', { host: name }), name).toMatch(/^(?:EAI_AGAIN|ENOTFOUND|ECONNREFUSED)$/);
      }
      const interfaces = await call<Record<string, unknown[]>>(instance, 'interfaces');
      expect(Object.values(interfaces).flat()).toHaveLength(2);
      // Its gateway forwards to it, and has no proxy.
      const [, gateway] = addressesOf(`palestra-${instance.id}-gateway`).toSorted((one) => (one.startsWith('198.') ? 1 : -1));
      expect(await call(instance, 'connect', { host: gateway, port: 3_128 })).toBe('ECONNREFUSED');
    } finally {
      service.close();
    }
  });

  test('it reaches the hosts that its environment names, through the proxy of its gateway', async () => {
    const service = http.createServer((_, response) => response.end('inside')).listen(0, '0.0.0.0');
    await once(service, 'listening');
    const { port } = service.address() as AddressInfo;
    try {
      // Addresses of this machine are as good as any: the operator has named them.
      const host = engine.hostAddress();
      const open = engine.provider({ reachable: [`${host}/32`] });
      const instance = await open.ensure(spec({ egress: { kind: 'hosts', hosts: [host] } }), soon());
      await expect.poll(() => call(instance, 'echo', { is: 'up' }).catch(() => null)).toEqual({ is: 'up' });
      const { HTTP_PROXY: proxy } = await call<Record<string, string>>(instance, 'env');
      const through = (url: string) => call(instance, 'fetch', { url, proxy });
      expect(await through(`http://${host}:${port}/`)).toBe(200);
      for (const refused of [`http://127.0.0.1:${port}/`, 'http://169.254.169.254/latest/meta-data/', 'http://example.com/']) {
        expect(await through(refused), refused).toBe(403);
      }
      // Beside the proxy there is no way.
      expect(await call(instance, 'connect', { host, port })).toMatch(/^(?:ENETUNREACH|EHOSTUNREACH)$/);
    } finally {
      service.close();
    }
  });

  test('its gateway takes connections of this service only', async () => {
    const [instance, other] = await Promise.all([start(), start({ egress: { kind: 'open' } })]);
    const { url, headers } = splitCredentials(instance.endpoint!);
    // A connection each: the gateway reads only the first request of one.
    const statusOf = (given: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const request = http.request(new URL('echo', url), { method: 'POST', headers: given, agent: false });
        request.on('response', (answer) => resolve(answer.resume().statusCode!)).on('error', reject);
        request.end('{}');
      });
    expect(await statusOf(headers)).toBe(200);
    const foreign = splitCredentials(other.endpoint!).headers;
    for (const wrong of [{}, foreign, { authorization: 'Basic' }, { authorization: 'Bearer x' }]) expect(await statusOf(wrong)).toBe(401);
    // A head that does not end within 64 KiB.
    expect(await statusOf({ authorization: `Basic ${'A'.repeat(100_000)}` }).catch(() => 401)).toBe(401);

    // Another environment that reaches the port, because the operator lets it reach the network of the gateways.
    const front = engine.ask(
      'inspect',
      '-f',
      '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}',
      `palestra-${instance.id}-gateway`,
    );
    const address = front.split(/\s+/).find((one) => !one.startsWith('198.'))!;
    const loose = engine.provider({ reachable: ['10.0.0.0/8', '172.16.0.0/12'] });
    const attacker = await startInstance(loose, spec({ egress: { kind: 'open' } }));
    const { HTTP_PROXY: proxy } = await call<Record<string, string>>(attacker, 'env');
    expect(await call(attacker, 'fetch', { url: `http://${address}:8080/env`, proxy })).toBe(401);
  });

  test('a service in a container reaches it by a network of the engine', async () => {
    const network = `palestra-test-${newUuid()}`;
    await expect(engine.provider({ network }).capabilities(soon())).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('PALESTRA_DOCKER_NETWORK'),
    });
    engine.ask('network', 'create', network);
    const inside = engine.provider({ network });
    try {
      expect(await inside.capabilities(soon())).toMatchObject({ builds: true });
      const instance = await startInstance(inside, spec());
      expect(instance.endpoint).not.toContain('127.0.0.1');
      expect(engine.ask('port', `palestra-${instance.id}-gateway`)).toBe('');
      await inside.remove(instance.id, 0, soon());
    } finally {
      engine.ask('network', 'rm', '-f', network);
    }
  });

  test('its log comes line by line, from any time, until it ends', async () => {
    const instance = await start();
    await call(instance, 'say', { text: 'line #', times: 50 });
    await call(instance, 'say', { text: `${'x'.repeat(20_000)}` });
    // A line in parts, the first of which ends within a character.
    for (const part of [Buffer.from('50 %\u2026').subarray(0, -1), Buffer.from([0xa6]), Buffer.from(' 100 %\n')]) {
      await call(instance, 'write_hex', { bytes: part.toString('hex') });
    }
    await call(instance, 'say', { text: 'last' });
    const all = await linesUntil(provider.logs(instance.id, null, soon()), 'last');
    const texts = all.map(({ text }) => text);
    expect(all.filter(({ stream }) => stream === 'stderr').map(({ text }) => text)).toEqual(['a complaint']);
    expect(texts.filter((text) => text.startsWith('line '))).toEqual(Array.from({ length: 50 }, (_, index) => `line ${index}`));
    expect(texts.findLast((text) => text.startsWith('x'))?.length).toBe(8_192);
    expect(texts.at(-2)).toBe('50 %\u2026 100 %');

    // A reader that stopped anywhere continues with the next line.
    const middle = all.findIndex(({ text }) => text === 'line 20');
    const following = provider.logs(instance.id, all[middle]!.at, soon());
    const rest: string[] = [];
    const read = (async () => {
      for await (const { text } of following) rest.push(text);
    })();
    await expect.poll(() => rest.at(-1)).toBe('last');
    expect(rest).toEqual(texts.slice(middle + 1));
    await call(instance, 'say', { text: 'later' });
    await provider.remove(instance.id, 5_000, soon());
    await read;
    expect(rest.slice(-2)).toEqual(['later', 'ending']);
    expect(await linesUntil(provider.logs(instance.id, null, soon()), 'never')).toEqual([]);
  });

  test('what it uses is measured', async () => {
    const instance = await start();
    const stats = await provider.stats(instance.id, soon());
    expect(stats).toMatchObject({ cpus: expect.any(Number), memoryMb: expect.any(Number), pids: expect.any(Number) });
    expect(stats!.memoryMb).toBeGreaterThan(1);
    expect(stats!.memoryMb).toBeLessThan(128);
    expect(stats!.pids).toBeGreaterThan(0);
    await call(instance, 'exit', { code: 0 });
    await expect.poll(() => provider.stats(instance.id, soon())).toBeNull();
    expect(await provider.stats(newUuid(), soon())).toBeNull();
  });

  test('how it ended is said', async () => {
    const instance = await start();
    await call(instance, 'exit', { code: 3 });
    await expect.poll(async () => (await only(instance.id))?.state).toBe('exited');
    const ended = await only(instance.id);
    expect(ended).toMatchObject({ endpoint: null, exit: { code: 3, reason: expect.stringContaining('status 3') } });
    // Nothing starts it again behind the back of who counts its ends.
    expect(await provider.ensure(spec({ id: instance.id }), soon())).toMatchObject({ state: 'exited', exit: { code: 3 } });

    const hungry = await start();
    await call(hungry, 'eat').catch(() => null);
    await expect.poll(async () => (await only(hungry.id))?.state).toBe('exited');
    expect(await only(hungry.id)).toMatchObject({ exit: { code: 137, reason: expect.stringMatching(/more than its 128 MB of memory/) } });
  });
});
