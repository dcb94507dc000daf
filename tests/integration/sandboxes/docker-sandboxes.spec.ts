import type { SandboxProvider, SandboxSpec } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeShellImage } from '../../support/shell-image.ts';
import { engineCommand, TestEngine } from '../hosting/docker-engine.world.ts';
import { machineAddress, startEcho } from './sandboxes.world.ts';

const soon = () => AbortSignal.timeout(60_000);
const PROCESSES = 'for p in /proc/[0-9]*; do cat $p/cmdline; echo; done';

describe.skipIf(engineCommand === undefined)('sandboxes in containers', () => {
  let engine: TestEngine;
  let sandboxes: SandboxProvider;
  let image: string;

  beforeAll(async () => {
    engine = await TestEngine.start();
    sandboxes = engine.provider({ plainHosts: [machineAddress()] }).sandboxes;
    image = makeShellImage(engineCommand!);
  });
  afterAll(async () => {
    await engine?.close();
    engine?.ask('rmi', '-f', image);
  });
  afterEach(async () => {
    for (const { id } of await sandboxes.list(soon())) await sandboxes.remove(id, soon());
    const left = engine.leftovers();
    if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
  });

  const spec = (given: Partial<SandboxSpec> = {}): SandboxSpec => ({
    id: newUuid(),
    environment: 'acme/shell',
    image,
    resources: { cpus: 1, memoryMb: 256, pids: 64 },
    variables: {},
    network: { kind: 'none' },
    sidecars: [],
    hostAliases: [],
    ...given,
  });
  const create = async (given: Partial<SandboxSpec> = {}) => {
    const made = spec(given);
    await sandboxes.create(made, soon());
    return made.id;
  };
  const bash = async (id: string, command: string, given: { timeoutMs?: number; maxBytes?: number; stdin?: Buffer } = {}) => {
    const request = { command: ['/bin/bash', '-c', command], timeoutMs: 20_000, maxBytes: 50_000, ...given };
    const { output, ...rest } = await sandboxes.exec(id, request, soon());
    return { ...rest, output: output.toString() };
  };

  test('commands have an exit status, an output, an input and a limit of output', async () => {
    const id = await create({ variables: { GREETING: 'hi there' } });
    expect(await bash(id, 'echo $GREETING; echo error >&2; exit 3')).toMatchObject({ exitCode: 3, timedOut: false, truncated: false });
    expect((await bash(id, 'echo out; sleep 1; echo err >&2')).output).toBe('out\nerr\n');
    expect(await bash(id, 'printf abcdef', { maxBytes: 4 })).toEqual({ exitCode: 0, output: 'abcd', timedOut: false, truncated: true });
    expect((await bash(id, 'wc -c', { stdin: Buffer.alloc(3_000_000, 1) })).output.trim()).toBe('3000000');
    expect(await bash(id, 'exit 124')).toMatchObject({ exitCode: 124, timedOut: false });
    expect((await sandboxes.exec(id, { command: ['/no/such'], timeoutMs: 5_000, maxBytes: 100 }, soon())).exitCode).toBe(127);
  });

  test('a command that takes too long is killed with what it began, and a process that is left behind does not hold a command', async () => {
    const id = await create();
    const started = Date.now();
    expect(await bash(id, '(sleep 30; touch /tmp/late) & echo begun; sleep 30', { timeoutMs: 2_000 })).toMatchObject({
      exitCode: 124,
      timedOut: true,
      output: 'begun\n',
    });
    expect(Date.now() - started).toBeLessThan(15_000);
    expect((await bash(id, PROCESSES)).output).not.toContain('sleep\x0030');
    const left = Date.now();
    expect((await bash(id, 'sleep 20 & echo done')).output).toBe('done\n');
    expect(Date.now() - left).toBeLessThan(15_000);
  });

  test('a command that is slow to start is killed too: its time begins when it runs', async () => {
    const id = await create();
    const slowShell = '#!/bin/bash\\nsleep 1\\nexec /bin/bash "$@"\\n';
    await bash(id, `printf '${slowShell}' > /tmp/sh; chmod +x /tmp/sh; mv -f /tmp/sh /bin/sh`);
    expect(await bash(id, 'echo begun; sleep 30', { timeoutMs: 500 })).toMatchObject({ exitCode: 124, timedOut: true });
    expect((await bash(id, PROCESSES)).output).not.toContain('sleep\x0030');
  });

  test('files are read, written, and neither links nor folders are', async () => {
    const id = await create();
    const content = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 256));
    await sandboxes.write(id, "/tmp/a folder/it's $HOME", content, soon());
    expect(await sandboxes.stat(id, "/tmp/a folder/it's $HOME", soon())).toEqual({ kind: 'file', size: 5_000 });
    const read = await sandboxes.read(id, "/tmp/a folder/it's $HOME", { offset: 4_990, length: 100 }, soon());
    expect(read).toEqual(content.subarray(4_990));
    await bash(id, 'ln -s /etc/passwd /tmp/link');
    expect(await sandboxes.stat(id, '/tmp/link', soon())).toEqual({ kind: 'symlink' });
    expect(await sandboxes.stat(id, '/tmp', soon())).toEqual({ kind: 'other' });
    expect(await sandboxes.stat(id, '/none', soon())).toBeNull();
  });

  test('its code has few rights, and sidecars share its network', async () => {
    const id = await create({
      sidecars: [
        {
          name: 'db',
          image,
          command: ['/usr/bin/node', '-e', 'require("http").createServer((q, a) => a.end(process.env.SAYS)).listen(8000, "127.0.0.1")'],
          args: null,
          variables: { SAYS: 'from the sidecar' },
        },
      ],
      hostAliases: [{ ip: '127.0.0.1', hostnames: ['db'] }],
    });
    const status = (await bash(id, 'cat /proc/self/status; id -u')).output;
    expect(status).toMatch(/NoNewPrivs:\s*1\n/);
    expect(status).toMatch(/Seccomp:\s*2\n/);
    expect(status).toMatch(/CapBnd:\s*00000000000000fb\n/);
    const ask = 'fetch("http://db:8000").then((a) => a.text()).then(console.log)';
    await expect
      .poll(async () => (await bash(id, `NODE_USE_ENV_PROXY=0 node -e '${ask}'`)).output, { timeout: 20_000 })
      .toContain('from the sidecar');
    const settings = JSON.parse(engine.ask('inspect', '-f', '{{json .HostConfig}}', `palestra-${id}`));
    expect(settings).toMatchObject({ Memory: 256 * 2 ** 20, MemorySwap: 256 * 2 ** 20, NanoCpus: 1e9, PidsLimit: 64, Privileged: false });
  });

  test('rules decide each request by host, path and method, and are replaced while it runs', async () => {
    const server = await startEcho();
    const { url } = server;
    const host = machineAddress();
    const rule = (action: 'allow' | 'deny', path: string | null, methods: string[] | null = null) => ({ action, host, path, methods });
    const rules = [rule('deny', '/simple/Requests/*'), rule('allow', '/simple/*', ['GET'])];
    const id = await create({ network: { kind: 'policy', rules, enforce: true } });
    const get = async (path: string, method = 'GET') => {
      const code = `const p = new URL(process.env.HTTP_PROXY); require('http').request({ host: p.hostname, port: p.port, path: '${url}${path}', method: '${method}' }, (a) => { let t = ''; a.on('data', (d) => t += d).on('end', () => console.log(a.statusCode, t)); }).on('error', (e) => console.log(e.code)).end()`;
      return (await bash(id, `node -e "${code}"`)).output.trim();
    };
    try {
      expect(await get('/simple/numpy/')).toBe('200 GET /simple/numpy/');
      expect(await get('/simple/numpy/', 'POST')).toContain('403');
      expect(await get('/simple/RE_quests/')).toContain('200');
      expect(await get('/simple/requests/')).toContain('blocked by sandbox network policy');
      expect(await get('/other')).toContain('403');
      const direct = `require('net').connect(${new URL(url).port}, '${host}').on('connect', () => console.log('in')).on('error', (e) => console.log(e.code))`;
      expect((await bash(id, `node -e "${direct}"`)).output.trim()).toBe('ENETUNREACH');
      await sandboxes.setNetwork(id, { kind: 'policy', rules: [], enforce: false }, soon());
      expect(await get('/other')).toBe('200 GET /other');
      await sandboxes.setNetwork(id, { kind: 'policy', rules: [], enforce: true }, soon());
      expect(await get('/other')).toContain('403');
    } finally {
      server.close();
    }
  });

  test('an image that is missing fails at once, and a sandbox that is gone is lost', async () => {
    await expect(create({ image: 'localhost/palestra-test/none:1' })).rejects.toMatchObject({ code: 'build_failed' });
    const id = await create();
    await sandboxes.remove(id, soon());
    await sandboxes.remove(id, soon());
    await expect(bash(id, 'true')).rejects.toMatchObject({ code: 'sandbox_lost' });
    await expect(sandboxes.setNetwork(id, { kind: 'none' }, soon())).rejects.toMatchObject({ code: 'sandbox_lost' });
    expect(await sandboxes.list(soon())).toEqual([]);
  });
});
