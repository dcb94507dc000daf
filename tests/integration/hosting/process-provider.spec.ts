import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { detectPlan, digestOf, ProcessProvider } from '@palestra/hosting';
import { afterAll, describe, expect, test } from 'vitest';
import {
  answerOf,
  artifactOf,
  folderOf,
  forget,
  isThere,
  KIT_ENVIRONMENT,
  linesOf,
  processesOf,
  requestOf,
  root,
  specOf,
} from './process.world.ts';

/** `ProcessProvider` with real processes. */
const folder = path.join(root, 'hosting');
const instances = path.join(folder, 'instances');
const provider = new ProcessProvider({ folder });
const { signal } = new AbortController();
const find = async (id: string) => (await provider.list()).find((one) => one.id === id);

afterAll(async () => {
  for (const { id } of await provider.list()) await provider.remove(id, 0, signal);
  await provider.close();
  forget();
});

test('a kit folder is built, served, adopted and removed', async () => {
  const source = folderOf({ 'environment.ts': KIT_ENVIRONMENT });
  const { plan } = await detectPlan(source);
  const request = requestOf({ kind: 'folder', folder: source, plan }, { sourceDigest: await digestOf(source) });
  const artifact = await provider.build(request, () => {}, signal);
  const spec = specOf(artifact);

  // Another process starts it, and is killed.
  const script = `
    import { ProcessProvider } from '@palestra/hosting';
    const provider = new ProcessProvider({ folder: process.argv[1] });
    const { endpoint } = await provider.ensure(JSON.parse(process.argv[2]), new AbortController().signal);
    console.log(endpoint);
    setInterval(() => {}, 1_000);
  `;
  const worker = spawn(process.execPath, ['--input-type=module', '--eval', script, folder, JSON.stringify(spec)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [endpoint] = (await once(createInterface({ input: worker.stdout }), 'line')) as [string];
  expect(JSON.parse(await answerOf(endpoint))).toMatchObject({ status: 'ok' });
  worker.kill('SIGKILL');
  await once(worker, 'exit');

  expect(await find(spec.id)).toMatchObject({ versionId: 'version-1', state: 'running', endpoint, exit: null, restarts: 0 });
  expect(await (await fetch(`${endpoint}/list_environments`)).json()).toEqual(['guess']);
  // The same instance, not another one.
  expect(await provider.ensure(spec, signal)).toMatchObject({ state: 'running', endpoint });
  const lines = await linesOf(provider, spec.id, ({ text }) => text.includes('"ready":true'));
  expect(lines[0]).toMatchObject({ stream: 'stdout', text: 'loading the environment' });
  expect(lines.every(({ at }) => Math.abs(Date.now() - at.getTime()) < 60_000)).toBe(true);
  const stats = await provider.stats(spec.id);
  expect(stats!.pids).toBe(2);
  expect(stats!.memoryMb).toBeGreaterThan(30);
  expect(stats!.cpus).toBeGreaterThan(0);

  await provider.remove(spec.id, 5_000, signal);
  expect(await find(spec.id)).toBeUndefined();
  await expect(fetch(endpoint)).rejects.toThrow();
  expect([isThere(path.join(instances, spec.id)), processesOf(path.join(instances, spec.id))]).toEqual([false, []]);
  expect(await provider.stats(spec.id)).toBeNull();
  // Removing it again, and the log of nothing.
  await provider.remove(spec.id, 0, signal);
  expect(await linesOf(provider, spec.id, () => false)).toEqual([]);
});

test('a server gets its own variables and secrets, and nothing of the service', async () => {
  process.env['SECRET_OF_THE_SERVICE'] = 'do not tell';
  const artifact = artifactOf(
    `console.log(JSON.stringify({ ...process.env, argument: process.argv[2], secret: require('node:fs').readFileSync(process.env.PALESTRA_SECRETS_DIR + '/TOKEN', 'utf8') })); listen();`,
    { variables: { DEPTH: '3', ADDRESS: '{host}:{port}' } },
  );
  const spec = specOf(artifact, { variables: { DEPTH: '4', MODE: 'fast' }, secrets: { TOKEN: 'abc' } });
  const { endpoint } = await provider.ensure(spec, signal);
  delete process.env['SECRET_OF_THE_SERVICE'];
  const [line] = await linesOf(provider, spec.id, () => true);
  const seen = JSON.parse(line!.text) as Record<string, string>;
  const { port } = new URL(endpoint!);
  expect(seen).toMatchObject({ DEPTH: '4', MODE: 'fast', ADDRESS: `127.0.0.1:${port}`, PORT: port, argument: port, secret: 'abc' });
  const own = path.join(instances, spec.id);
  expect([seen['HOME'], seen['TMPDIR'], seen['PALESTRA_INSTANCE']]).toEqual([`${own}/home`, `${own}/tmp`, spec.id]);
  expect(seen).not.toHaveProperty('SECRET_OF_THE_SERVICE');
  expect(statSync(own).mode & 0o777).toBe(0o700);
  expect(statSync(path.join(own, 'secrets/TOKEN')).mode & 0o777).toBe(0o400);
  const wrong = specOf(artifact, { secrets: { '../x': 'y' } });
  await expect(provider.ensure(wrong, signal)).rejects.toMatchObject({ code: 'instance_failed' });
  expect([isThere(path.join(instances, 'x')), await find(wrong.id)]).toEqual([false, undefined]);
});

test('two processes that ensure the same instance start one', async () => {
  const spec = specOf(artifactOf(`console.log('started'); listen();`));
  const other = new ProcessProvider({ folder });
  const [one, two] = await Promise.all([provider.ensure(spec, signal), other.ensure(spec, signal)]);
  expect([one.state, one.endpoint]).toEqual(['running', two.endpoint]);
  await answerOf(one.endpoint!);
  expect(processesOf(path.join(instances, spec.id))).toHaveLength(2);
});

describe('an instance that ends', () => {
  test('at its start is shown with its status and its last lines', async () => {
    const spec = specOf(artifactOf(`console.error('no such model'); process.exit(3);`));
    await provider.ensure(spec, signal);
    await expect
      .poll(() => find(spec.id))
      .toMatchObject({ state: 'exited', endpoint: null, exit: { code: 3, reason: 'It exited with code 3.' } });
    // The log ends with it.
    expect(await linesOf(provider, spec.id, () => false)).toMatchObject([{ stream: 'stderr', text: 'no such model' }]);
    expect(await provider.stats(spec.id)).toBeNull();
    // It exists: to start it again is the business of the caller.
    expect(await provider.ensure(spec, signal)).toMatchObject({ state: 'exited' });
    await provider.remove(spec.id, 0, signal);
    expect(await provider.ensure(spec, signal)).toMatchObject({ id: spec.id });
  });

  test('by a signal, or because there is no such program, says so', async () => {
    const killed = specOf(artifactOf(`process.kill(process.pid, 'SIGKILL');`));
    await provider.ensure(killed, signal);
    await expect.poll(() => find(killed.id)).toMatchObject({ exit: { code: null, reason: 'It was ended by SIGKILL.' } });
    const missing = specOf(artifactOf('', { command: 'no-such-program' }));
    await provider.ensure(missing, signal);
    await expect
      .poll(() => find(missing.id))
      .toMatchObject({ exit: { code: null, reason: expect.stringMatching(/could not be started.*ENOENT/) as string } });
  });

  test('takes what it started with it', async () => {
    const spec = specOf(artifactOf(`require('node:child_process').spawn('sleep', ['1000']); setTimeout(() => process.exit(1), 200);`));
    await provider.ensure(spec, signal);
    await expect.poll(() => find(spec.id)).toMatchObject({ state: 'exited' });
    await expect.poll(() => processesOf(path.join(instances, spec.id))).toEqual([]);
  });

  test('with the process that keeps its log is ended as a whole', async () => {
    const spec = specOf(artifactOf('listen();'));
    const { endpoint } = await provider.ensure(spec, signal);
    await answerOf(endpoint!);
    const { pid } = JSON.parse(readFileSync(path.join(instances, spec.id, 'record.json'), 'utf8')) as { pid: number };
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => find(spec.id)).toMatchObject({ state: 'exited', exit: { reason: 'Its process was killed.' } });
    await expect.poll(() => processesOf(path.join(instances, spec.id))).toEqual([]);
  });
});

test('an instance that was killed while its folder cannot be written, as with a full disk, hides no other', async () => {
  const spec = specOf(artifactOf('listen();'));
  const { endpoint } = await provider.ensure(spec, signal);
  await answerOf(endpoint!);
  mkdirSync(path.join(instances, spec.id, 'exit.json.new'));
  process.kill((JSON.parse(readFileSync(path.join(instances, spec.id, 'record.json'), 'utf8')) as { pid: number }).pid, 'SIGKILL');
  await expect.poll(() => find(spec.id)).toMatchObject({ state: 'exited', exit: { reason: 'Its process was killed.' } });
  await provider.remove(spec.id, 0, signal);
});

test('a port that another program took is replaced', async () => {
  const spec = specOf(
    artifactOf(`
      const first = require('node:path').join(process.env.TMPDIR, 'first');
      if (require('node:fs').existsSync(first)) listen();
      else {
        require('node:fs').writeFileSync(first, '');
        console.error('Error: listen EADDRINUSE: address already in use 127.0.0.1:' + process.env.PORT);
        process.exitCode = 1;
      }
    `),
  );
  await provider.ensure(spec, signal);
  await expect.poll(async () => (await fetch(`${(await find(spec.id))!.endpoint}/health`).catch(() => null))?.status).toBe(200);
});

test('a server that never listens and ignores SIGTERM is removed with all that it started', async () => {
  const spec = specOf(
    artifactOf(`
      process.on('SIGTERM', () => console.log('not yet'));
      const { spawn } = require('node:child_process');
      spawn('sleep', ['1000']);
      spawn('setsid', ['sleep', '1000'], { detached: true });
      spawn('sleep', ['1000'], { env: {} });
      setInterval(() => {}, 1_000);
      console.log('started');
    `),
  );
  await provider.ensure(spec, signal);
  await linesOf(provider, spec.id, ({ text }) => text === 'started');
  expect(await find(spec.id)).toMatchObject({ state: 'running' });
  await expect.poll(async () => (await provider.stats(spec.id))!.pids).toBeGreaterThanOrEqual(5);
  const following = linesOf(provider, spec.id, () => false);
  await provider.remove(spec.id, 2_000, signal);
  // A reader of its log saw it end.
  expect((await following).map(({ text }) => text)).toEqual(['started', 'not yet']);
  expect(processesOf(path.join(instances, spec.id))).toEqual([]);
});

test('a flood of lines keeps the disk bounded, and its end is read', async () => {
  const spec = specOf(
    artifactOf(`
      const line = 'x'.repeat(1_000) + '\\n';
      let left = 60_000;
      const write = () => {
        while (left > 0 && process.stdout.write(line.repeat(100))) left -= 100;
        if (left > 0) return void process.stdout.once('drain', () => { left -= 100; write(); });
        process.stdout.write('y'.repeat(20_000) + '\\nthe end\\n');
        listen();
      };
      write();
    `),
  );
  await provider.ensure(spec, signal);
  const lines = await linesOf(provider, spec.id, ({ text }) => text === 'the end');
  expect(lines.length).toBeGreaterThan(5_000);
  // A long line is several.
  expect(lines.slice(-4).map(({ text }) => text.length)).toEqual([8_192, 8_192, 20_000 - 2 * 8_192, 7]);
  const own = path.join(instances, spec.id);
  expect(['log', 'log.1'].reduce((sum, name) => sum + statSync(path.join(own, name)).size, 0)).toBeLessThan(17_000_000);
  // Only what is later.
  expect(await linesOf(provider, spec.id, ({ text }) => text === 'the end', new Date(lines.at(-1)!.at.getTime() - 1))).toMatchObject(
    lines.filter(({ at }) => at.getTime() >= lines.at(-1)!.at.getTime()),
  );
});

test('a reader that continues after any line gets each other line once', async () => {
  // All in one write, so in the same moment.
  const spec = specOf(artifactOf(`console.log(Array.from({ length: 60 }, (_, line) => 'line ' + line).join('\\n')); listen();`));
  await provider.ensure(spec, signal);
  const isLast = ({ text }: { text: string }) => text === 'line 59';
  const lines = await linesOf(provider, spec.id, isLast);
  for (const at of [0, 1, 17, 58]) {
    const rest = await linesOf(provider, spec.id, isLast, lines[at]!.at);
    expect(rest.map(({ text }) => text)).toEqual(lines.slice(at + 1).map(({ text }) => text));
  }
});

test('an instance ends when its folder is deleted, and the next service removes what is left of it', async () => {
  const [whole, headless] = [specOf(artifactOf('listen();')), specOf(artifactOf('listen();'))];
  const folders = [whole, headless].map(({ id }) => path.join(instances, id));
  for (const spec of [whole, headless]) await answerOf((await provider.ensure(spec, signal)).endpoint!);
  const { pid } = JSON.parse(readFileSync(path.join(folders[1]!, 'record.json'), 'utf8')) as { pid: number };
  process.kill(pid, 'SIGKILL');
  for (const one of folders) rmSync(one, { recursive: true });
  const next = new ProcessProvider({ folder });
  expect((await next.list()).find(({ id }) => id === headless.id)).toMatchObject({ state: 'running', endpoint: null });
  await next.remove(headless.id, 0, signal);
  await expect.poll(() => folders.flatMap(processesOf)).toEqual([]);
});

test('an instance of an earlier start of the machine is not taken for a process of this one', async () => {
  const spec = specOf(artifactOf('listen();'));
  await provider.ensure(spec, signal);
  const file = path.join(instances, spec.id, 'record.json');
  const record = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...record, bootId: 'earlier' }));
  expect(await find(spec.id)).toMatchObject({ state: 'exited' });
});

test('files of an instance that were cut when the machine lost power hide no other instance, and the instance is removed', async () => {
  const spec = specOf(artifactOf('setInterval(() => {}, 1000);'));
  await provider.ensure(spec, signal);
  for (const name of ['order.json', 'record.json', 'exit.json']) writeFileSync(path.join(instances, spec.id, name), '');
  expect(await find(spec.id)).toMatchObject({ state: 'starting' });
  await provider.remove(spec.id, 0, signal);
  expect(await find(spec.id)).toBeUndefined();
  expect(processesOf(path.join(instances, spec.id))).toEqual([]);
});

test('what the provider cannot enforce is refused', async () => {
  expect(await provider.capabilities()).toMatchObject({ isolation: ['none'], egress: ['open'], limits: false, gpus: false });
  const artifact = artifactOf('listen();');
  const refused = (spec: Parameters<typeof provider.ensure>[0], message: string) =>
    expect(provider.ensure(spec, signal)).rejects.toMatchObject({
      code: 'hosting_unsupported',
      message: expect.stringContaining(message) as string,
    });
  await refused(specOf(artifact, { egress: { kind: 'none' } }), 'egress');
  await refused(specOf(artifact, { isolation: 'container' }), 'isolate');
  await refused(specOf(artifact, { resources: { ...specOf(artifact).resources, gpus: 1 } }), 'GPUs');
  await refused(specOf({ kind: 'image', digest: 'sha256:1', image: 'x', port: 80 }), 'built folders only');
  expect(readdirSync(instances).length).toBeGreaterThan(0);
  const gone = { ...artifact, folder: path.join(root, 'gone') };
  expect([await provider.has(artifact), await provider.has(gone)]).toEqual([true, false]);
  await expect(provider.ensure(specOf(gone), signal)).rejects.toMatchObject({ code: 'instance_failed' });
});

test('nothing is left of instances that were removed', async () => {
  for (const { id } of await provider.list()) await provider.remove(id, 0, signal);
  expect(await provider.list()).toEqual([]);
  expect([readdirSync(instances), processesOf(instances)]).toEqual([[], []]);
});
