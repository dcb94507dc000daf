import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** What programs read from the commands for environments on this machine. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let folder: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-env-formats-'));
  server = await sharedServer();
  await palestra('env init machine -o json');
});
afterAll(async () => {
  for (const child of running) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

function start(line: string) {
  const env = { ...process.env, PALESTRA_URL: server.url, PALESTRA_API_KEY: server.apiKey };
  const child = spawn(process.execPath, [CLI, ...line.split(' ')], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.push(child);
  return child;
}
async function palestra(line: string) {
  const child = start(line);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}
/** The first line of a command that stays. */
async function firstLine(line: string): Promise<unknown> {
  const child = start(line);
  let output = '';
  let errors = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  await expect.poll(() => (child.exitCode === null ? output : `\n${errors}`), { timeout: 90_000 }).toContain('\n');
  return JSON.parse(output.split('\n', 1)[0]!) as unknown;
}

test.each([
  ['TypeScript', 'typescript', '', 'environment.ts'],
  ['openreward', 'openreward', ' --python', 'server.py'],
  ['OpenEnv', 'openenv', ' --python --openenv', 'server/app.py'],
])('init for %s names the files that it wrote', async (_, language, flags, file) => {
  const name = `new_${language}`;
  const { code, stdout, stderr } = await palestra(`env init ${name}${flags} -o yaml`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const written = parse(stdout) as { files: string[] };
  expect(written).toMatchObject({ name, language, folder: name, next: expect.arrayContaining([`cd ${name}`]) });
  expect(written.files).toContain(file);
  const found = await readdir(path.join(folder, name), { recursive: true, withFileTypes: true });
  const files = found
    .filter((one) => one.isFile())
    .map((one) => path.relative(path.join(folder, name), path.join(one.parentPath, one.name)));
  expect(written.files.toSorted()).toEqual(files.toSorted());
});

test('init of a folder that is not empty is an error for programs', async () => {
  const { code, stdout, stderr } = await palestra('env init machine -o jsonl');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(JSON.parse(stderr)).toMatchObject({ code: 'usage', message: expect.stringContaining('not empty') });
});

test('serve names its address and its environments', async () => {
  const served = (await firstLine('env serve machine --port 0 -o jsonl')) as { url: string; environments: string[] };
  expect(served).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), environments: ['machine'] });
  expect(await (await fetch(`${served.url}/list_environments`)).json()).toEqual(served.environments);

  // A running server has no report.
  const pushed = await palestra(`env push machine --url ${served.url} -o json`);
  expect(pushed.code).toBe(0);
  expect(JSON.parse(pushed.stdout)).toEqual({
    name: `${server.orgName}/machine`,
    version: 1,
    changed: true,
    url: served.url,
    kind: 'remote',
    pid: null,
    container: null,
    report: null,
  });
  expect(JSON.parse((await palestra(`env push machine --url ${served.url} -o jsonl`)).stdout)).toMatchObject({
    version: 1,
    changed: false,
  });
  const checked = await palestra('env validate machine --tasks 1 --player-tasks 1 -o yaml');
  expect(parse(checked.stdout)).toMatchObject({ passed: true, environments: [{ name: 'machine' }] });
});

test('push has the version with its report, and the process that serves it', async () => {
  const pushed = await palestra('env push machine --name reported --detach -o json');
  expect(pushed.code, pushed.stderr).toBe(0);
  const { pid, report, ...rest } = JSON.parse(pushed.stdout) as { pid: number; report: object };
  try {
    expect(rest).toMatchObject({ name: `${server.orgName}/reported`, version: 1, changed: true, kind: 'remote' });
    const { body } = await server.request('GET', `/v1/environments/${server.orgName}/reported`);
    expect(body.report).toMatchObject(report);
    expect(report).toMatchObject({ reward_range: [0, 1], checks: expect.any(Array), players: expect.any(Array) });
  } finally {
    process.kill(pid, 'SIGTERM');
  }
});

test('dev has one line with the link to the playground', async () => {
  const shown = await firstLine('env dev machine --name developed -o jsonl');
  expect(shown).toEqual({
    name: `${server.orgName}/developed`,
    version: 1,
    changed: true,
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    service_url: server.url,
    service_started: false,
    playground_url: expect.stringContaining(server.url),
  });
});
