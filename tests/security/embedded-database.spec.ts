import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '@palestra/hosting';
import { PostgresServer } from '../../apps/api/src/platform/database/postgres-server.ts';
import { type Palestra, startPalestra } from '../support/palestra.ts';

// A service starts with a PostgreSQL of its own, which is killed and started several times.
vi.setConfig({ testTimeout: 300_000, expect: { poll: { timeout: 120_000 } } });

const isRunning = (pid: number) => existsSync(`/proc/${pid}`) && !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
const postmaster = (dataDir: string) => Number(readFileSync(path.join(dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
const rollout = (id: string, runName = 'survivor') => ({ events: [{ eventType: 'rollout', eventId: id, timestamp: Date.now(), runName }] });

async function ask({ url, apiKey }: { url: string; apiKey: string }, method: string, route: string, body?: object) {
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const response = await fetch(url + route, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Record<string, any> };
}
const status = async ({ url }: Palestra, route: string) => (await fetch(url + route)).status;

function openFolder(prefix: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), prefix));
  chmodSync(folder, 0o755);
  return folder;
}

describe('R1: the embedded PostgreSQL dies', () => {
  let palestra: Palestra;
  beforeAll(async () => {
    palestra = await startPalestra({ ownPostgres: true });
  });
  afterAll(async () => {
    await palestra?.stop();
  });

  const restarts = async () => (await ask(palestra, 'GET', '/v1/health')).body.database.embedded.restarts as number;

  test.each(['SIGKILL', 'SIGQUIT', 'SIGTERM'] as const)(
    '%s: the service starts it again and goes on, with all that it acknowledged',
    async (signal) => {
      const before = randomUUID();
      expect((await ask(palestra, 'POST', '/v1/rollouts', rollout(before))).status).toBe(200);
      const [pid, restarted] = [postmaster(palestra.dataDir), await restarts()];
      process.kill(pid, signal);
      expect(await status(palestra, '/health/live')).toBe(200);
      await expect.poll(restarts, { interval: 100 }).toBe(restarted + 1);
      await expect.poll(() => status(palestra, '/health/ready'), { interval: 100 }).toBe(200);
      expect(await status(palestra, '/health')).toBe(200);
      expect(isRunning(pid)).toBe(false);

      expect((await ask(palestra, 'GET', `/v1/rollouts/${before}`)).status).toBe(200);
      // A page follows a run: news come over LISTEN.
      const news = new AbortController();
      const stream = await fetch(`${palestra.url}/v1/stream`, { headers: { 'x-api-key': palestra.apiKey }, signal: news.signal });
      let heard = '';
      const hearing = (async () => {
        for await (const chunk of stream.body!) heard += Buffer.from(chunk).toString();
      })().catch(() => {});
      const post = async () => {
        await ask(palestra, 'POST', '/v1/rollouts', rollout(randomUUID()));
        return heard;
      };
      await expect.poll(post, { interval: 500 }).toContain('event: run');
      news.abort();
      await hearing;
    },
  );

  test('M11: PostgreSQL has no secret of the service in its environment', () => {
    const environment = readFileSync(`/proc/${postmaster(palestra.dataDir)}/environ`, 'utf8');
    expect(environment).not.toContain(palestra.apiKey);
    expect(environment).not.toMatch(/PALESTRA|DATABASE|S3_/);
  });

  test('repeatedly: it restarts each time, and all responses are 200 or a typed 503', async () => {
    const answers = new Set<string>();
    let over = false;
    const asking = (async () => {
      while (!over) {
        const { status: code, body } = await ask(palestra, 'POST', '/v1/rollouts', rollout(randomUUID()));
        answers.add(code === 200 ? '200' : `${code} ${body.code}`);
      }
    })();
    for (let kill = 0; kill < 3; kill += 1) {
      const restarted = await restarts();
      process.kill(postmaster(palestra.dataDir), 'SIGKILL');
      await expect.poll(restarts, { interval: 100 }).toBe(restarted + 1);
    }
    over = true;
    await asking;
    expect([...answers].filter((answer) => answer !== '200' && answer !== '503 database_unavailable')).toEqual([]);
    expect((await ask(palestra, 'GET', '/v1/me')).status).toBe(200);
  });
});

test('a service that has just started survives the end of PostgreSQL', async () => {
  const [port, dataDir] = [await freePort(), openFolder('palestra-test-')];
  const starting = startPalestra({ ownPostgres: true, port, dataDir });
  try {
    const ready = () =>
      fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(ready, { interval: 2 }).toBe(true);
    process.kill(postmaster(dataDir), 'SIGKILL');
    const palestra = await starting;
    await expect.poll(async () => (await ask(palestra, 'GET', '/v1/me')).status, { interval: 100 }).toBe(200);
  } finally {
    await (await starting).stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('R1: while it cannot start, the service reports it, later also on /health, and recovers', async () => {
  const palestra = await startPalestra({ ownPostgres: true });
  try {
    const version = path.join(palestra.dataDir, 'postgres/data/PG_VERSION');
    writeFileSync(version, '15\n');
    process.kill(postmaster(palestra.dataDir), 'SIGKILL');
    await expect.poll(() => status(palestra, '/health/ready'), { interval: 100 }).toBe(503);
    // Held for a while, as through a restart.
    const [me, stranger] = await Promise.all([
      ask(palestra, 'GET', '/v1/me'),
      ask({ ...palestra, apiKey: 'or_another_key_of_nobody' }, 'GET', '/v1/health'),
    ]);
    expect(me).toMatchObject({ status: 503, body: { code: 'database_unavailable' } });
    expect(stranger.status).toBe(503);
    await expect.poll(() => status(palestra, '/health'), { interval: 500 }).toBe(503);
    expect(await status(palestra, '/health/live')).toBe(200);
    // The first key opens the operator's page although no database knows it now; another one does not.
    expect(await ask(palestra, 'GET', '/v1/health')).toMatchObject({
      status: 200,
      body: {
        status: 'database_unavailable',
        database: { reachable: false, embedded: { state: 'restarting', detail: expect.stringContaining('version') } },
      },
    });
    writeFileSync(version, '18\n');
    await expect.poll(() => status(palestra, '/health/ready'), { interval: 100 }).toBe(200);
    await expect.poll(async () => (await ask(palestra, 'GET', '/v1/me')).status).toBe(200);
  } finally {
    await palestra.stop();
  }
});

/** The group of a process: what a terminal's Ctrl-C is sent to. */
const groupOf = (pid: number) => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[2]);

test.each(['SIGINT', 'SIGKILL'] as const)(
  'R1: %s to the process group, as from a terminal: PostgreSQL outlives the service and is not left behind',
  async (signal) => {
    const dataDir = openFolder('palestra-group-');
    const port = await freePort();
    const child = spawn(process.execPath, [path.resolve(import.meta.dirname, '../../apps/api/dist/main.js')], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        PORT: String(port),
        PALESTRA_DATA_DIR: dataDir,
        PALESTRA_DEMO: '0',
        PALESTRA_BUNDLED_ENVIRONMENTS: '0',
      },
    });
    let output = '';
    child.stdout.on('data', (data: Buffer) => (output += data.toString()));
    try {
      await expect.poll(() => output).toContain('Palestra is ready');
      const pid = postmaster(dataDir);
      expect(groupOf(pid)).not.toBe(groupOf(child.pid!));
      const ended = once(child, 'exit');
      process.kill(-child.pid!, signal);
      const [code] = (await ended) as [number | null];
      // PostgreSQL went last: closing was clean.
      if (signal === 'SIGINT') expect(code).toBe(0);
      await expect.poll(() => isRunning(pid)).toBe(false);
      expect(existsSync(path.join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false);
    } finally {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
);

test('R1: a start ends when it is aborted, or when the server is silent', async () => {
  const folder = openFolder('palestra-start-');
  const options = {
    databaseDir: path.join(folder, 'data'),
    choosePort: freePort,
    password: 'test',
    initdbFlags: ['--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
  };
  const server = new PostgresServer(options);
  const silent = new PostgresServer({ ...options, postgresFlags: [...options.postgresFlags, '-c', 'log_min_messages=panic'] });
  try {
    await server.initialise();
    await expect(server.start({ signal: AbortSignal.abort(new Error('told to')) })).rejects.toThrow('told to');
    const told = new AbortController();
    const starting = silent.start({ signal: told.signal });
    const refused = starting.then(
      () => null,
      (error: unknown) => error,
    );
    await expect.poll(() => silent.pid, { interval: 1 }).toBeGreaterThan(0);
    told.abort(new Error('told to'));
    expect(await refused).toMatchObject({ message: 'told to' });
    await expect(silent.start({ silenceMs: 500 })).rejects.toThrow('wrote nothing');
    expect(isRunning(silent.pid!)).toBe(false);
    // The children of a killed postmaster exit with a delay.
    await vi.waitFor(() => server.start(), { timeout: 60_000, interval: 100 });
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a port that another process takes before the server does: it starts at another one, and an error names the cause', async () => {
  const folder = openFolder('palestra-port-');
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const held = (holder.address() as AddressInfo).port;
  const options = {
    databaseDir: path.join(folder, 'data'),
    password: 'test',
    initdbFlags: ['--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
  };
  const chosen = [held, await freePort()];
  const server = new PostgresServer({ ...options, choosePort: async () => chosen.shift()! });
  try {
    await server.initialise();
    const unlucky = new PostgresServer({ ...options, choosePort: async () => held });
    await expect(unlucky.start()).rejects.toThrow(/^postgres ended with 1: .*FATAL: +could not create any TCP\/IP sockets$/);
    await server.start();
    expect(chosen).toEqual([]);
    expect(server.port).not.toBe(held);
    await server.stop();
    // It keeps its port, at which clients look for it.
    await server.start();
    // As after `kill -9`: the folder is in use.
    const second = new PostgresServer({ ...options, choosePort: freePort });
    await expect(second.start()).rejects.toThrow(/FATAL: .*lock file "postmaster.pid" already exists HINT: /);
  } finally {
    await server.stop();
    holder.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

const DISK_MB = 320;

/** Mounts a small disk; false where only the operator of the machine may. Under CI that is a failure. */
function mountDisk(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=755`, 'palestra-test', folder], { stdio: 'pipe' });
    return true;
  } catch (error) {
    if (process.env['CI']) throw error;
    return false;
  }
}

describe('R1: the disk is full', () => {
  const disk = openFolder('palestra-disk-');
  const ballast = path.join(disk, 'ballast');
  let mounted = false;
  afterEach(() => rmSync(ballast, { force: true }));
  afterAll(() => {
    if (mounted) execFileSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  const fill = () => {
    const { bavail, bsize } = statfsSync(disk);
    if (bavail > 0) execFileSync('sh', ['-c', `head -c ${bavail * bsize} /dev/zero >> ${ballast} || true`], { stdio: 'ignore' });
  };

  test('the service reports it and recovers when there is space', async ({ skip }) => {
    mounted = mountDisk(disk);
    if (!mounted) skip('only root mounts a disk');
    const dataDir = path.join(disk, 'data');
    mkdirSync(dataDir, { mode: 0o755 });
    const palestra = await startPalestra({ ownPostgres: true, dataDir });
    try {
      const kept: string[] = [];
      const post = async () => {
        const id = randomUUID();
        // Some megabytes of rows that do not compress.
        const content = Array.from({ length: 30_000 }, () => randomUUID()).join('');
        const message = {
          eventType: 'message',
          eventId: randomUUID(),
          rolloutEventId: id,
          timestamp: Date.now(),
          index: 0,
          type: 'user_message',
          content,
        };
        const [start] = rollout(id, 'disk').events;
        const answer = await ask(palestra, 'POST', '/v1/rollouts', { events: [start, message] });
        if (answer.status === 200) kept.push(id);
        return answer;
      };
      expect((await post()).status).toBe(200);
      fill();
      await expect
        .poll(
          async () => {
            fill();
            const { status: code, body } = await post();
            return code === 503 ? body : null;
          },
          { interval: 100 },
        )
        .toMatchObject({ code: 'storage_full', detail: expect.stringContaining('is full') });
      expect(await status(palestra, '/health/live')).toBe(200);
      // A PostgreSQL that starts again on the full disk removes files of its log.
      const free = async () => {
        fill();
        return (await ask(palestra, 'GET', '/v1/health')).body.disk.free_bytes as number;
      };
      await expect.poll(free, { interval: 100 }).toBeLessThan(16 * 1024 * 1024);

      rmSync(ballast);
      await expect.poll(async () => (await post()).status, { interval: 500 }).toBe(200);
      await expect.poll(() => status(palestra, '/health/ready'), { interval: 500 }).toBe(200);
      for (const id of kept) expect((await ask(palestra, 'GET', `/v1/rollouts/${id}`)).status, id).toBe(200);
    } finally {
      await palestra.stop();
    }
  });
});
