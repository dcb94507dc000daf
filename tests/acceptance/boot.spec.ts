import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '@palestra/hosting';
import { type Palestra, startPalestra } from '../support/palestra.ts';
import { signIn } from '../support/organisation.ts';
import { createDatabase } from '../support/server.ts';

/** `npm start` as a person meets it: what it prints, what it refuses, what it survives. */

// A test starts the service up to three times.
vi.setConfig({ testTimeout: 240_000 });

const MAIN = path.resolve(import.meta.dirname, '../../apps/api/dist/main.js');

function dataDir(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-boot-'));
  chmodSync(folder, 0o755);
  return folder;
}

/** Runs the service until it ends by itself. */
async function run(env: Record<string, string>): Promise<{ code: number | null; stderr: string }> {
  const child: ChildProcess = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '', PALESTRA_DEMO: '0', PALESTRA_BUNDLED_ENVIRONMENTS: '0', ...env },
  });
  let stderr = '';
  child.stderr!.on('data', (data: Buffer) => (stderr += data.toString()));
  // Its output is complete only then.
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

const postmaster = (folder: string) => path.join(folder, 'postgres/data/postmaster.pid');
const isRunning = (pid: number) => existsSync(`/proc/${pid}`);

describe('an impossible start ends with one clear line', () => {
  const folder = dataDir();
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('an invalid variable', async () => {
    const { code, stderr } = await run({ PALESTRA_DATA_DIR: folder, PORT: 'eighty' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^palestra: PORT: [^\n]+\n$/);
  });

  test('a data directory of another PostgreSQL', async () => {
    mkdirSync(path.join(folder, 'old/postgres/data'), { recursive: true });
    writeFileSync(path.join(folder, 'old/postgres/data/PG_VERSION'), '15\n');
    const { code, stderr } = await run({ PALESTRA_DATA_DIR: path.join(folder, 'old'), PORT: '0' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^palestra: .*created by PostgreSQL 15, this is 18[^\n]+\n$/);
  });

  test('a database that does not answer', async () => {
    const { code, stderr } = await run({
      PALESTRA_DATA_DIR: path.join(folder, 'x'),
      DATABASE_URL: `postgresql://a:b@127.0.0.1:${await freePort()}/c`,
      PORT: '0',
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^palestra: [^\n]*DATABASE_URL[^\n]*\n$/);
  });
});

/** Root gives its privileges away; anybody else has none. */
const NOBODY = 65_534;
const ROOT = path.resolve(import.meta.dirname, '../..');

/** Whether every user may pass the folders above. */
function isReachable(file: string): boolean {
  const folder = path.dirname(file);
  return (statSync(folder).mode & 0o001) !== 0 && (folder === '/' || isReachable(folder));
}

/** The service and Node where every user can read them: here, or copied from a closed folder such as /root. */
function readableService(folder: string): { root: string; node: string } {
  if (isReachable(MAIN) && isReachable(process.execPath)) return { root: ROOT, node: process.execPath };
  const names = ['apps', 'libs', 'prisma', 'node_modules', 'package.json'];
  execFileSync('cp', ['-a', ...names.map((name) => path.join(ROOT, name)), process.execPath, folder]);
  execFileSync('chmod', ['-R', 'go+rX', folder]);
  return { root: folder, node: path.join(folder, path.basename(process.execPath)) };
}

test('a user without root rights needs only Node', async () => {
  const folder = dataDir();
  const asRoot = process.getuid!() === 0;
  if (asRoot) chownSync(folder, NOBODY, NOBODY);
  const copy = dataDir();
  const env = { PATH: folder, HOME: folder };
  const user = asRoot ? { uid: NOBODY, from: readableService(copy) } : {};
  const palestra = await startPalestra({ ownPostgres: true, dataDir: folder, env, ...user });
  try {
    expect(statSync(postmaster(folder)).uid).toBe(asRoot ? NOBODY : process.getuid!());
    expect((await fetch(`${palestra.url}/v1/me`, { headers: { 'x-api-key': palestra.apiKey } })).status).toBe(200);
  } finally {
    await palestra.stop();
    for (const made of [folder, copy]) rmSync(made, { recursive: true, force: true });
  }
});

// Root starts PostgreSQL as another user, who cannot pass this folder.
test('a data directory below a folder with mode 0700 keeps its data after a crash', async () => {
  const closed = mkdtempSync(path.join(tmpdir(), 'palestra-closed-'));
  chmodSync(closed, 0o700);
  const folder = path.join(closed, 'nested/data');
  const palestra = await startPalestra({ ownPostgres: true, dataDir: folder });
  try {
    const request = (method: string, route: string, body?: string) =>
      fetch(palestra.url + route, {
        method,
        headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
        body: body ?? null,
      });
    const id = randomUUID();
    const events = [{ eventType: 'rollout', eventId: id, timestamp: 1, runName: 'closed' }];
    expect((await request('POST', '/v1/rollouts', JSON.stringify({ events }))).status).toBe(200);
    // A second service on this data finds the first one, whose PostgreSQL does not name the folder on its command line.
    const second = await run({ PALESTRA_DATA_DIR: folder, PORT: '0' });
    expect(second).toMatchObject({ code: 1, stderr: expect.stringMatching(/^palestra: another Palestra [^\n]+\n$/) });
    const pid = Number(readFileSync(postmaster(folder), 'utf8').split('\n')[0]);
    await palestra.kill();
    await palestra.restart();
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect((await request('GET', `/v1/rollouts/${id}`)).status).toBe(200);
  } finally {
    await palestra.stop();
    rmSync(closed, { recursive: true, force: true });
  }
});

describe('a running service', () => {
  let palestra: Palestra;
  const folder = dataDir();
  beforeAll(async () => {
    palestra = await startPalestra({ ownPostgres: true, dataDir: folder, env: { PALESTRA_API_KEY: '' } });
  });
  afterAll(async () => {
    await palestra.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const key = () => readFileSync(path.join(folder, 'api-key'), 'utf8').trim();
  const ask = (method: string, route: string, body?: unknown) =>
    fetch(palestra.url + route, {
      method,
      headers: { 'x-api-key': key(), 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });

  test('without a terminal, writes the three variables, its key and a link that signs in once to a file of its owner', async () => {
    const file = path.join(folder, 'sign-in.txt');
    // It answers /health a moment before it has said all.
    await expect.poll(() => palestra.output()).toContain(`are in ${file}\n`);
    expect(palestra.output()).not.toMatch(/login\?token|\bor_/);
    const written = readFileSync(file, 'utf8');
    for (const name of ['URL', 'API_URL', 'SESSION_URL']) expect(written).toContain(`export OPENREWARD_${name}=${palestra.url}\n`);
    expect(written).toContain(`export OPENREWARD_API_KEY=${key()}\n`);
    for (const secret of ['api-key', 'sign-in.txt', 'server-secret']) expect(statSync(path.join(folder, secret)).mode & 0o077).toBe(0);
    const link = /http:\S+\/login\?token=\S+/.exec(written)![0];
    expect(await signIn(link)).toMatch(/^palestra_session=./);
    expect(await signIn(link)).toBe('');
  });

  test('a second service on its port, or on its data, ends with one line', async () => {
    const other = dataDir();
    const taken = await run({ PALESTRA_DATA_DIR: other, PORT: String(palestra.port) });
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringMatching(/^palestra: port \d+ of 127\.0\.0\.1 is taken[^\n]+\n$/) });
    expect(existsSync(postmaster(other))).toBe(false);
    rmSync(other, { recursive: true, force: true });
    const shared = await run({ PALESTRA_DATA_DIR: folder, PORT: '0' });
    expect(shared).toMatchObject({ code: 1, stderr: expect.stringMatching(/^palestra: another Palestra [^\n]+\n$/) });
    expect((await ask('GET', '/v1/me')).status).toBe(200);
  });

  test('keeps everything acknowledged when all processes are killed, and restarts', async () => {
    const id = randomUUID();
    const posted = await ask('POST', '/v1/rollouts', {
      events: [{ eventType: 'rollout', eventId: id, timestamp: 1, runName: 'survivor' }],
    });
    expect(posted.status).toBe(200);
    const before = key();
    const pid = Number(readFileSync(postmaster(folder), 'utf8').split('\n')[0]);
    await palestra.kill();
    await palestra.restart();
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(key()).toBe(before);
    expect((await ask('GET', `/v1/rollouts/${id}`)).status).toBe(200);

    process.kill(Number(readFileSync(postmaster(folder), 'utf8').split('\n')[0]), 'SIGKILL');
    await palestra.kill();
    await palestra.restart();
    expect((await ask('GET', `/v1/rollouts/${id}`)).status).toBe(200);
  });

  test('replaces a revoked first key', async () => {
    const { keys } = (await (await ask('GET', '/v1/keys')).json()) as { keys: { id: string; name: string }[] };
    const before = key();
    await ask('DELETE', `/v1/keys/${keys.find(({ name }) => name === 'first key')!.id}`);
    await palestra.stop();
    await palestra.restart();
    expect(key()).not.toBe(before);
    expect((await ask('GET', '/v1/me')).status).toBe(200);
  });

  test.each(['stop', 'hangUp'] as const)('stops its PostgreSQL on a signal: %s', async (how) => {
    const pid = Number(readFileSync(postmaster(folder), 'utf8').split('\n')[0]);
    await palestra[how]();
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(existsSync(postmaster(folder))).toBe(false);
    await palestra.restart();
  });
});

describe('without its database', () => {
  test('reports that nothing was stored, and continues when the database is back', async () => {
    const database = await createDatabase();
    const target = new URL(database.url);
    const upstreamPort = Number(target.port);
    const sockets = new Set<Socket>();
    const proxy = createServer((socket) => {
      const upstream = connect(upstreamPort, '127.0.0.1');
      for (const end of [socket, upstream]) {
        sockets.add(end);
        end.on('error', () => {});
      }
      socket.pipe(upstream).pipe(socket);
    });
    const port = await freePort();
    proxy.listen(port, '127.0.0.1');
    target.port = String(port);
    const palestra = await startPalestra({ env: { DATABASE_URL: target.href } });
    const post = () =>
      fetch(`${palestra.url}/v1/rollouts`, {
        method: 'POST',
        headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({ events: [{ eventType: 'rollout', eventId: randomUUID(), timestamp: 1, runName: 'r' }] }),
      });
    expect((await post()).status).toBe(200);
    proxy.close();
    for (const socket of sockets) socket.destroy();
    const refused = await post();
    expect({ status: refused.status, body: await refused.json(), retry: refused.headers.get('retry-after') }).toMatchObject({
      status: 503,
      body: { code: 'database_unavailable' },
      retry: '1',
    });
    proxy.listen(port, '127.0.0.1');
    await expect.poll(async () => (await post()).status).toBe(200);
    await palestra.stop();
    proxy.close();
    for (const socket of sockets) socket.destroy();
    await database.drop();
  });
});
