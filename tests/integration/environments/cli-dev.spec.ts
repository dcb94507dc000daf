import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { PalestraClient } from '@palestra/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { childrenOf, livingOf } from '../../support/process-tree.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** `palestra env dev` as it is built. tests/conformance has it for Python. */
const CLI = path.resolve(import.meta.dirname, '../../../apps/cli/dist/main.js');
let server: TestServer;
let client: PalestraClient;
let folder: string;
let running: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'palestra-cli-dev-'));
  server = await sharedServer();
  client = new PalestraClient({ url: server.url, apiKey: server.apiKey });
  await promisify(execFile)(process.execPath, [CLI, 'env', 'init', 'dev-guess'], { cwd: folder });
});
afterEach(async () => {
  await Promise.all(running.map((child) => end(child)));
  running = [];
});
afterAll(async () => {
  await client?.close();
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function end(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, 'exit');
  child.kill('SIGINT');
  return ((await exited) as [number | null])[0];
}

/** Variables without those of another service. */
function withoutService(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:PALESTRA|OPENREWARD)_/.test(name)));
}

function dev(env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, [CLI, 'env', 'dev', 'dev-guess', '--no-open'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  const said = async (pattern: RegExp) => {
    await expect.poll(() => (child.exitCode === null ? output : `${output}\n(ended)`), { timeout: 90_000 }).toMatch(pattern);
    return pattern.exec(output)!;
  };
  return { child, said, output: () => output };
}

/** Opens the link as a browser does and presses the button. Returns the cookie and the page that it shows then. */
async function signIn(link: string) {
  const page = await (await fetch(link)).text();
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)![1]!;
  const form = new URLSearchParams({ token: field('token'), next: field('next') });
  const answer = await fetch(new URL('/login', link), { method: 'POST', body: form, redirect: 'manual' });
  return { status: answer.status, cookie: answer.headers.get('set-cookie')!, page: answer.headers.get('location') };
}

test('uses the service of the variables, prints a link to the playground, and reloads on save', async () => {
  const { child, said } = dev({ ...withoutService(), OPENREWARD_URL: server.url, OPENREWARD_API_KEY: server.apiKey });
  const [, link] = await said(/once\):\n {2}(\S+)\n/);
  const name = `${server.orgName}/dev-guess`;
  expect(await signIn(link!)).toMatchObject({
    status: 303,
    page: `/environments/${name}/play`,
    cookie: expect.stringMatching(/^palestra_session=./),
  });

  const play = () => client.session({ environment: name, split: 'train', index: 0 });
  const old = await play();
  expect(await old.prompt()).toMatchObject([{ text: expect.stringContaining('from 0 to 999') as string }]);
  const file = path.join(folder, 'dev-guess/environment.ts');
  const source = await readFile(file, 'utf8');
  await writeFile(file, source.replace('I think of', 'Think of'));
  await said(/Reloaded after a change of environment\.ts/);
  const fresh = await play();
  expect(await fresh.prompt()).toMatchObject([{ text: expect.stringContaining('Think of') as string }]);
  expect(await old.call('guess', { number: 919 })).toMatchObject({ reward: 1 });

  await writeFile(file, 'export default {{{');
  await said(/does not load after a change of environment\.ts: [^]*The old code stays/);
  expect(await fresh.call('guess', { number: 919 })).toMatchObject({ reward: 1 });
  await writeFile(file, source);
  await Promise.all([old.close(), fresh.close()]);
  const { url } = (await client.environments.get(name)).source;
  expect(await end(child)).not.toBeNull();
  expect(await fetch(`${url}/health`).catch(() => null)).toBeNull();
});

test('starts a service of its own without any, and ends it', async () => {
  const { child, said } = dev(withoutService());
  const [, link] = await said(/once\):\n {2}(\S+)\n/);
  const own = new URL(link!).origin;
  expect(own).not.toBe(server.url);
  const { cookie, page } = await signIn(link!);
  expect(page).toBe('/environments/local/dev-guess/play');
  const view = await fetch(`${own}/v1/environments/local/dev-guess`, { headers: { cookie: cookie.split(';')[0]! } });
  expect(await view.json()).toMatchObject({ status: 'ready' });

  // A second one uses it.
  const second = dev({ ...withoutService() });
  await second.said(/shown by the service at/);
  expect(await end(second.child)).not.toBeNull();
  expect(await fetch(`${own}/health`).then(({ ok }) => ok)).toBe(true);

  await end(child);
  expect(await fetch(`${own}/health`).catch(() => null)).toBeNull();
});

test('a kill ends its service, database and environment server, and the next one starts at once', async () => {
  const first = dev(withoutService());
  await first.said(/once\):\n {2}(\S+)\n/);
  const postmaster = await readFile(path.join(folder, 'dev-guess/.palestra/postgres/data/postmaster.pid'), 'utf8');
  const pids = [...childrenOf(first.child.pid!), Number(postmaster.split('\n')[0])];
  expect(pids).toHaveLength(3);
  expect(livingOf(pids)).toHaveLength(3);
  first.child.kill('SIGKILL');
  const next = dev(withoutService());
  const [, link] = await next.said(/once\):\n {2}(\S+)\n/);
  expect(next.output()).toMatch(/shown by a new service/);
  expect((await signIn(link!)).status).toBe(303);
  await expect.poll(() => livingOf(pids), { timeout: 30_000 }).toEqual([]);
  await end(next.child);
});

test('an environment that does not load, and a service that does not respond, are named', async () => {
  await writeFile(path.join(folder, 'broken.ts'), `throw new Error('no such dataset');\n`);
  const failed = await promisify(execFile)(process.execPath, [CLI, 'env', 'dev', 'broken.ts'], {
    cwd: folder,
    env: withoutService(),
  }).catch((error: { code: number; stderr: string }) => error);
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('no such dataset') as string });
  const env = { ...withoutService(), OPENREWARD_URL: 'http://127.0.0.1:9', OPENREWARD_API_KEY: 'or_x' };
  const { child, said } = dev(env);
  await said(/http:\/\/127\.0\.0\.1:9\/? does not respond/);
  await expect.poll(() => child.exitCode).toBe(2);
});
