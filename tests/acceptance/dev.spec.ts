import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import WebSocket from 'ws';
import { freePort } from '@palestra/hosting';
import { signIn } from '../support/organisation.ts';

/** `npm run dev` in a copy of the tree, whose sources the test may change. */
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000, expect: { poll: { timeout: 200_000 } } });

const root = path.resolve(import.meta.dirname, '../..');
const copy = mkdtempSync(path.join(tmpdir(), 'palestra-dev-'));
const SOURCE = 'apps/api/src/platform/http/dashboard-pages.ts';

let origin: string;
let output = '';
let child: ReturnType<typeof spawn>;

beforeAll(async () => {
  for (const name of ['apps', 'libs', 'scripts', 'package.json', 'tsconfig.base.json', 'tsconfig.build.json'])
    cpSync(path.join(root, name), path.join(copy, name), {
      recursive: true,
      // The build compares times.
      preserveTimestamps: true,
      filter: (source) => path.basename(source) !== 'node_modules',
    });
  symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  child = spawn(process.execPath, ['scripts/dev.mjs'], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      NODE_ENV: 'development',
      PORT: String(port),
      PALESTRA_DATA_DIR: path.join(copy, 'data'),
      PALESTRA_DEMO: '0',
      PALESTRA_BUNDLED_ENVIRONMENTS: '0',
    },
  });
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (data: Buffer) => (output += data.toString()));
  await vi.waitUntil(() => output.includes('Ready in') || child.exitCode !== null, { timeout: 200_000, interval: 50 });
  if (child.exitCode !== null) throw new Error(`dev ended: ${output}`);
});
afterAll(async () => {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  rmSync(copy, { recursive: true, force: true });
});

const isRunning = (pid: number) => existsSync(`/proc/${pid}`);
const page = (route: string) => fetch(origin + route, { headers: { accept: 'text/html' }, redirect: 'manual' });

test('Vite serves pages and modules, and the API everything else, from one origin', async () => {
  const runs = await page('/runs');
  expect(runs.headers.get('content-security-policy')).toBeNull();
  expect(await runs.text()).toContain('/@vite/client');
  expect(await (await fetch(`${origin}/src/main.tsx`)).text()).toContain('/src/data/client.ts');
  expect((await page('/settings/api-keys')).headers.get('location')).toBe('/keys');
  const key = readFileSync(path.join(copy, 'data/api-key'), 'utf8').trim();
  expect((await fetch(`${origin}/v1/me`, { headers: { 'x-api-key': key } })).status).toBe(200);
  // Its stdout is no terminal here.
  expect(output).not.toMatch(/login\?token|\bor_/);
  const link = new RegExp(`${origin}/login\\S+`).exec(readFileSync(path.join(copy, 'data/sign-in.txt'), 'utf8'))![0];
  expect(await signIn(link)).toMatch(/^palestra_session=./);
  // The client of Vite connects to the same origin.
  const socket = new WebSocket(origin.replace('http', 'ws'), 'vite-ping');
  await once(socket, 'open');
  socket.terminate();
});

test('successive changes of the API are active after restarts', async () => {
  const file = path.join(copy, SOURCE);
  const source = readFileSync(file, 'utf8');
  expect(source).toContain("redirect('/keys'");
  for (const name of ['/first', '/second']) {
    // As editors save: another file takes the name.
    writeFileSync(`${file}~`, source.replace("redirect('/keys'", `redirect('${name}'`));
    renameSync(`${file}~`, file);
    await expect.poll(async () => (await page('/settings/api-keys')).headers.get('location')).toBe(name);
  }
  // The next build must replace the file that the dev server compiled.
  expect(existsSync(path.join(copy, 'apps/api/dist/.tsbuildinfo'))).toBe(false);
  const key = readFileSync(path.join(copy, 'data/api-key'), 'utf8').trim();
  expect((await fetch(`${origin}/v1/me`, { headers: { 'x-api-key': key } })).status).toBe(200);
});

test('Ctrl-C ends all processes, also after the API was killed', async () => {
  const postmaster = Number(readFileSync(path.join(copy, 'data/postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
  // Oldest first: the API, and the one that waits to be the next, which takes its title when it has begun to run.
  const apis = () => {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
    return children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('palestra-dev-api'));
  };
  await expect.poll(apis).toHaveLength(2);
  const [api, standby] = apis();
  process.kill(api!, 'SIGKILL');
  await expect.poll(() => output).toContain('The API ended (SIGKILL)');
  child.kill('SIGINT');
  await once(child, 'exit');
  for (const pid of [postmaster, api!, standby!]) await expect.poll(() => isRunning(pid)).toBe(false);
});
