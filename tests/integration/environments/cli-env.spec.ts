import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { PalestraClient } from '@palestra/client';
import type { EnvironmentReport } from '@palestra/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { childrenOf } from '../../support/process-tree.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** `palestra env init | validate | serve | push` as it is built, for environments of the kit; OpenEnv's are in tests/conformance. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let client: PalestraClient;
let folder: string;
let ends: (() => Promise<number | null>)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-cli-env-'));
  server = await sharedServer();
  client = new PalestraClient({ url: server.url, apiKey: server.apiKey });
});
afterEach(async () => {
  await Promise.all(ends.map((end) => end()));
  ends = [];
});
afterAll(async () => {
  await client?.close();
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

const environ = (extra: object = {}) => ({ ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey, ...extra });

async function palestra(args: string[], extra: object = {}): Promise<{ code: number; stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [CLI, ...args], { env: environ(extra), cwd: folder }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

/** A command that stays: waits for what it prints first that fits. */
async function staying(args: string[], pattern: RegExp) {
  const child = spawn(process.execPath, [CLI, ...args], { env: environ(), cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (output += data.toString()));
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    return ((await exited) as [number | null])[0];
  };
  ends.push(end);
  for (const deadline = Date.now() + 60_000; Date.now() < deadline && child.exitCode === null;) {
    const found = pattern.exec(output);
    if (found !== null) return { found, end, pid: child.pid!, output: () => output };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never said ${pattern}:\n${output}`);
}

test('init refuses invalid names and non-empty folders', async () => {
  for (const args of [['a b'], ['ab'], ['-x'], ['1st'], ['With-Dash', '--openenv'], []])
    expect((await palestra(['env', 'init', ...args])).code, args.join(' ')).not.toBe(0);
  await mkdir(path.join(folder, 'taken'));
  await writeFile(path.join(folder, 'taken/mine.txt'), 'precious');
  expect(await palestra(['env', 'init', 'taken'])).toMatchObject({ code: 2 });
  expect(await readFile(path.join(folder, 'taken/mine.txt'), 'utf8')).toBe('precious');
});

test('a new environment is valid at once; a broken one is reported with its reason', async () => {
  expect(await palestra(['environments', 'init', 'lucky-number'])).toMatchObject({ code: 0, stdout: 'lucky-number\n' });
  const report = await palestra(['env', 'validate', 'lucky-number', '-o', 'json']);
  expect(report).toMatchObject({ code: 0 });
  const { environments, ...about } = JSON.parse(report.stdout) as { environments: { name: string; report: EnvironmentReport }[] };
  expect(about).toMatchObject({
    passed: true,
    validation_type: 'local_environment',
    standard_version: '0.1.0',
    criteria: [{ id: 'environment_loads', actual: ['lucky-number'] }, { id: 'readme' }],
  });
  expect(environments.map(({ name }) => name)).toEqual(['lucky-number']);
  const { checks, players } = environments[0]!.report;
  expect(checks.filter(({ status }) => status !== 'passed')).toEqual([]);
  expect(checks.find(({ id }) => id === 'runtime.task_declaration_accuracy')!.detail).toBe('train: 900, test: 100');
  expect(players.map(({ name, split, tasks, solved }) => [name, split, tasks, solved])).toEqual([
    ['random', 'test', 100, expect.any(Number)],
    ['naive', 'test', 100, expect.any(Number)],
    ['expert', 'test', 100, 1],
    ['solve', 'test', 100, 1],
  ]);
  await writeFile(path.join(folder, 'throws.ts'), `throw new Error('no such dataset');\n`);
  await writeFile(path.join(folder, 'empty.ts'), `export default 7 as number;\n`);
  const prompt = `prompt: () => { throw new Error('prompt of a bad task'); }`;
  const tools = `tools: { t: tool({ description: 'T.', run: () => 'x' }) }`;
  const body = `{ name: 'bad', splits: ['train', 'none'], tasks: (split: string) => (split === 'train' ? [1] : []), ${prompt}, ${tools} }`;
  const bad = `import { defineEnvironment, tool } from '@palestra/environment-kit';\nexport default defineEnvironment<number>(${body});\n`;
  await writeFile(path.join(folder, 'bad.ts'), bad);
  expect((await palestra(['env', 'validate', 'throws.ts'])).stdout).toContain('no such dataset');
  expect((await palestra(['env', 'validate', 'empty.ts'])).stdout).toContain('exports no environment');
  const played = await palestra(['env', 'validate', 'bad.ts', '--json']);
  expect(played.code).toBe(1);
  const failed = (JSON.parse(played.stdout) as { environments: { report: EnvironmentReport }[] }).environments[0]!.report.checks.filter(
    ({ status }) => status === 'failed',
  );
  expect(failed.map(({ id }) => id)).toEqual(['runtime.task_declaration_accuracy', 'runtime.startup']);
  expect(failed[1]!.detail).toContain('prompt of a bad task');
  await writeFile(path.join(folder, 'exits.ts'), `process.exit(3);\n`);
  expect((await palestra(['env', 'validate', 'exits.ts'])).stdout).toContain('The module ended its process (exit status 3).');
  await writeFile(path.join(folder, 'hangs.ts'), `for (;;);\n`);
  const hanging = await palestra(['env', 'validate', 'hangs.ts', '--deadline', '2']);
  expect(hanging).toMatchObject({ code: 1 });
  expect(hanging.stderr).toContain('Validation took longer than 2 s.');
  expect(await palestra(['env', 'validate', 'nowhere'])).toMatchObject({ code: 2 });
  expect(await palestra(['env', 'serve', 'throws.ts', '--port', '0'])).toMatchObject({ code: 1, stdout: '' });
});

test('serve restarts a dead process, and ends it when it ends itself', async () => {
  const { found, end, pid, output } = await staying(['env', 'serve', 'lucky-number', '--port', '0'], /http:\/\/127\.0\.0\.1:\d+/);
  const answers = () =>
    fetch(`${found[0]}/list_environments`)
      .then((answer) => answer.json())
      .catch(() => null);
  expect(await answers()).toEqual(['lucky-number']);
  const [child] = childrenOf(pid);
  process.kill(child!, 'SIGKILL');
  await expect.poll(output, { timeout: 40_000 }).toContain('Restarting it');
  await expect.poll(answers, { timeout: 40_000 }).toEqual(['lucky-number']);
  expect(await end()).toBe(0);
  expect(await answers()).toBeNull();
});

test('a rejected promise of a tool ends no session; the death of a process is reported with its cause', async () => {
  const late = `setTimeout(() => { throw new Error('thrown too late'); }, 10); return 'bye';`;
  const tools = `tools: {
    stray: tool({ description: 'S.', run: () => { void Promise.reject(new Error('left behind')); return 'done'; } }),
    late: tool({ description: 'L.', run: () => { ${late} } }) }`;
  const body = `{ name: 'stray', splits: ['train'], tasks: () => [{}], prompt: () => 'p', ${tools} }`;
  const code = `import { defineEnvironment, tool } from '@palestra/environment-kit';\nexport default defineEnvironment<object>(${body});\n`;
  await writeFile(path.join(folder, 'stray.ts'), code);
  const { found, output } = await staying(['env', 'push', 'stray.ts', '--name', 'stray'], /^(\S+)@1$/m);
  const session = await client.session({ environment: found[1]!, split: 'train', index: 0 });
  expect(await session.call('stray', {})).toMatchObject({ blocks: [{ text: 'done' }] });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await session.call('stray', {})).toMatchObject({ blocks: [{ text: 'done' }] });
  await session.call('late', {}).catch(() => null);
  await expect.poll(output, { timeout: 40_000 }).toMatch(/Restarting it[^]*thrown too late/);
});

test('push serves and registers a folder; the environment is played', async () => {
  const { found, end, output } = await staying(['env', 'push', 'lucky-number'], /^(\S+)@1$/m);
  const name = found[1]!;
  expect(name).toBe(`${server.orgName}/lucky-number`);
  expect(await client.environments.get(name)).toMatchObject({
    source: { kind: 'remote' },
    description: 'Guess a number with hints higher or lower · version 0.1.0',
  });
  // The template declares itself deterministic, so its sessions can be forked.
  expect((await client.environments.get(name)).sessions).toEqual({ deterministic: true, idempotent_tools: [] });
  const session = await client.session({ environment: name, split: 'train', index: 1 });
  expect(await client.sessions.fork(session.sid, { atCall: 0 })).toMatchObject({ sid: expect.any(String) });
  expect(await session.call('guess', { number: 838 })).toMatchObject({ reward: 1, finished: true });
  await session.close();
  // What lies behind a split is no task of it: here it would be one of the other split.
  await expect(client.session({ environment: name, split: 'train', index: 1_000 })).rejects.toMatchObject({ status: 400 });
  await expect.poll(output, { timeout: 60_000 }).toContain('12 of 12 checks did not fail');
  expect((await client.environments.get(name)).report).toMatchObject({ reward_range: [0, 1], checks: { length: 12 } });
  const registered = await palestra(['env', 'validate', '--environment', name, '--tasks', '2', '--player-tasks', '3', '--report']);
  expect(registered).toMatchObject({ code: 0 });
  expect(registered.stdout).toMatch(/^\S+\/lucky-number: 10 passed, 0 failed, 2 skipped$/m);
  expect(registered.stderr).toContain(`The page of ${name} shows the report of version 1.`);
  expect((await client.environments.get(name)).report).toMatchObject({ reward_range: null, players: [{ name: 'random', tasks: 3 }] });
  const { url } = (await client.environments.get(name)).source;
  expect(await palestra(['env', 'validate', url!, '--tasks', '2', '--player-tasks', '0'])).toMatchObject({ code: 0 });
  expect(await end()).toBe(0);
});

test('push --detach keeps it running; --url detects the protocol of a server', async () => {
  const pushed = await palestra(['env', 'push', 'lucky-number', '--name', 'detached', '--detach', '--no-report']);
  expect(pushed).toMatchObject({ code: 0, stdout: `${server.orgName}/detached@1\n` });
  const [, pid, url] = /Process (\d+) serves (\S+)\./.exec(pushed.stderr)!;
  try {
    const again = await palestra(['env', 'push', 'lucky-number', '--name', 'detached', '--url', url!]);
    expect(again.stdout).toContain('@1: already registered with this server');
    const other = await palestra(['env', 'push', folder, '--name', 'by-url', '--public', '--url', url!]);
    expect(other).toMatchObject({ code: 0, stdout: `${server.orgName}/by-url@1\n` });
    expect(other.stderr).toContain('is an ORS server');
    expect(await client.environments.get(`${server.orgName}/detached`)).toMatchObject({ is_private: true });
    expect(await client.environments.get(`${server.orgName}/by-url`)).toMatchObject({ is_private: false });
  } finally {
    process.kill(Number(pid), 'SIGTERM');
  }
  expect(await palestra(['env', 'push', folder, '--url', url!])).toMatchObject({ code: 2 });
  const dead = await palestra(['env', 'push', folder, '--name', 'dead', '--url', 'http://127.0.0.1:9']);
  expect(dead).toMatchObject({ code: 1 });
  expect(dead.stderr).toContain('http://127.0.0.1:9 does not respond');
});

test('a push makes the session policy agree with the code, and keeps the other settings', async () => {
  const about = `name: 'declared', splits: ['train'], tasks: () => [{}], prompt: () => 'p'`;
  const body = (more: string) => `{ ${about}, tools: { t: tool({ description: 'T.', ${more} run: () => 'x' }) }`;
  const code = (text: string) =>
    `import { defineEnvironment, tool } from '@palestra/environment-kit';\nexport default defineEnvironment<object>(${text});\n`;
  const push = async () => {
    const { end } = await staying(['env', 'push', 'declared.ts', '--name', 'declared'], /is an ORS server/);
    await end();
    return (await client.environments.get(`${server.orgName}/declared`)).sessions;
  };
  await writeFile(path.join(folder, 'declared.ts'), code(`${body('')} }`));
  expect(await push()).toBeNull();
  await palestra(['env', 'set', 'declared', '--capacity', '4', '--deterministic']);
  expect(await push()).toEqual({ capacity: 4, deterministic: false, idempotent_tools: [] });
  await writeFile(path.join(folder, 'declared.ts'), code(`${body('idempotent: true,')}, deterministic: true }`));
  expect(await push()).toEqual({ capacity: 4, deterministic: true, idempotent_tools: ['t'] });
});

test('docs/skyrl-openenv.md registers an OpenEnv server as it says', async () => {
  const text = await readFile(path.resolve(import.meta.dirname, '../../../docs/skyrl-openenv.md'), 'utf8');
  const [, line] = /^palestra (env push --url \S+ --name \S+)$/m.exec(text)!;
  // As much of a server as the detection of its protocol asks for.
  const openenv = createServer((request, response) => {
    const isSchema = request.url === '/schema';
    response.writeHead(isSchema ? 200 : 404).end(isSchema ? '{"action":{},"observation":{}}' : '{}');
  }).listen(0, '127.0.0.1');
  await once(openenv, 'listening');
  const upstream = `http://127.0.0.1:${(openenv.address() as { port: number }).port}`;
  const words = line!.replace('http://127.0.0.1:8000', upstream).replace('acme/', `${server.orgName}/`).split(' ');
  const pushed = await palestra(words);
  openenv.close();
  const stdout = `${server.orgName}/openspiel-env@1\n`;
  expect(pushed).toMatchObject({ code: 0, stdout, stderr: expect.stringContaining('is an OpenEnv server') });
});

test('an image without a container engine is refused with the reason', async () => {
  const none = path.join(folder, 'no-engines');
  await mkdir(none);
  const refused = await palestra(['env', 'push', 'registry.example/acme/echo_env:latest'], { PATH: none });
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.stderr).toMatch(
    /docker is not installed; podman is not installed\. Start Docker or Podman, or choose another engine with --engine/,
  );
});
