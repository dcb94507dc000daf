import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { InstanceSpec, LogLine, RunningInstance } from '@palestra/hosting';
import { DockerProvider } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { engineCommand, TestEngine } from './docker-engine.world.ts';

/** The program of all instances here: what it does is in its first argument and in requests. */
const SERVER = `
import http from 'node:http';
import net from 'node:net';
import fs from 'node:fs';
import dns from 'node:dns/promises';
const port = Number(process.env.PORT);
const connect = (host, port) => new Promise((resolve) => {
  const socket = net.connect({ host, port, timeout: 1500 });
  socket.on('connect', () => resolve('connected')).on('timeout', () => resolve('timeout')).on('error', (error) => resolve(error.code));
}).finally(() => {});
const tryTo = async (work) => { try { return await work(); } catch (error) { return error.code ?? error.message; } };
const actions = {
  echo: (body) => body,
  connect: ({ host, port }) => connect(host, port),
  resolve: ({ host }) => tryTo(() => dns.lookup(host)),
  fetch: ({ url, proxy }) => tryTo(() => new Promise((resolve, reject) => {
    const target = new URL(proxy);
    http.get({ host: target.hostname, port: target.port, path: url }, (answer) => resolve(answer.statusCode)).on('error', reject);
  })),
  env: () => process.env,
  self: () => ({ uid: process.getuid(), gid: process.getgid(), status: fs.readFileSync('/proc/self/status', 'utf8') }),
  read: ({ file }) => tryTo(() => fs.readFileSync(file, 'utf8')),
  write: ({ file, megabytes = 0 }) => tryTo(() => { fs.writeFileSync(file, Buffer.alloc(Math.max(1, megabytes * 2 ** 20))); return 'written'; }),
  say: ({ text, times = 1 }) => { for (let i = 0; i < times; i += 1) console.log(text.replace('#', i)); return times; },
  eat: async () => { const all = []; for (;;) { all.push(Buffer.alloc(2 ** 24, 1)); await new Promise((next) => setImmediate(next)); } },
  exit: ({ code }) => { setTimeout(() => process.exit(code), 20); return code; },
};
console.log('listening soon');
console.error('a complaint');
http.createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk)).on('end', async () => {
    const result = await actions[request.url.slice(1)](body ? JSON.parse(body) : {});
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(result));
  });
}).listen(port, '0.0.0.0', () => console.log('listening'));
process.on('SIGTERM', () => { console.log('ending'); process.exit(0); });
`;

describe.skipIf(engineCommand === undefined)('instances in containers', () => {
  let engine: TestEngine;
  let provider: DockerProvider;
  let artifact: InstanceSpec['artifact'];
  const soon = () => AbortSignal.timeout(60_000);

  beforeAll(async () => {
    engine = await TestEngine.start();
    provider = engine.provider();
    const folder = path.join(engine.folder, 'source');
    mkdirSync(folder);
    writeFileSync(path.join(folder, 'server.mjs'), SERVER);
    artifact = await provider.build(
      {
        deployId: newUuid(),
        sourceDigest: `sha256:${engine.installation}`,
        source: {
          kind: 'folder',
          folder,
          plan: { kind: 'node', install: false, server: { command: 'node', args: ['server.mjs'], cwd: '.', variables: {} } },
        },
        buildArguments: {},
        limits: { seconds: 60, memoryMb: 1_024, maxBytes: 2 ** 30, network: false },
      },
      () => {},
      soon(),
    );
  });
  afterAll(() => engine?.close());
  afterEach(async () => {
    for (const { id } of await provider.list(soon())) await provider.remove(id, 0, soon());
    const left = engine.leftovers();
    if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
  });

  const spec = (given: Partial<InstanceSpec> = {}): InstanceSpec => ({
    id: newUuid(),
    versionId: 'version-1',
    environment: 'acme/echo',
    artifact,
    resources: { cpus: 1, memoryMb: 128, pids: 64, diskMb: 8, gpus: 0 },
    egress: { kind: 'none' },
    isolation: 'container',
    variables: {},
    secrets: {},
    ...given,
  });

  async function call<T>({ endpoint }: RunningInstance, action: string, body: object = {}): Promise<T> {
    const answer = await fetch(`${endpoint}/${action}`, { method: 'POST', body: JSON.stringify(body), signal: soon() });
    return (await answer.json()) as T;
  }

  /** Runs it until it answers. */
  async function start(given: Partial<InstanceSpec> = {}): Promise<RunningInstance> {
    const instance = await provider.ensure(spec(given), soon());
    await expect.poll(() => call(instance, 'echo', { is: 'up' }).catch(() => null)).toEqual({ is: 'up' });
    return instance;
  }

  const only = async (id: string) => (await provider.list(soon())).find((one) => one.id === id);

  async function linesUntil(lines: AsyncIterable<LogLine>, last: string): Promise<LogLine[]> {
    const read: LogLine[] = [];
    for await (const line of lines) {
      read.push(line);
      if (line.text === last) break;
    }
    return read;
  }

  test('one starts, is listed, is found by everyone who wants it, and goes without a trace', async () => {
    const wanted = spec();
    const [first, second] = await Promise.all([provider.ensure(wanted, soon()), engine.provider().ensure(wanted, soon())]);
    expect(second.id).toBe(first.id);
    expect(await provider.ensure(wanted, soon())).toMatchObject({
      state: 'running',
      endpoint: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
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

  test('its log comes line by line, from any time, until it ends', async () => {
    const instance = await start();
    await call(instance, 'say', { text: 'line #', times: 50 });
    await call(instance, 'say', { text: `${'x'.repeat(20_000)}` });
    await call(instance, 'say', { text: 'last' });
    const all = await linesUntil(provider.logs(instance.id, null, soon()), 'last');
    const texts = all.map(({ text }) => text);
    expect(all.filter(({ stream }) => stream === 'stderr').map(({ text }) => text)).toEqual(['a complaint']);
    expect(texts.filter((text) => text.startsWith('line '))).toEqual(Array.from({ length: 50 }, (_, index) => `line ${index}`));
    expect(texts.at(-2)).toBe('x'.repeat(8_192));

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
