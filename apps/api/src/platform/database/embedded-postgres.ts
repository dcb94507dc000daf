import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { mkdir, readFile, readlink, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@palestra/hosting';
import pRetry from 'p-retry';
import pg from 'pg';
import { PostgresServer } from './postgres-server.ts';
import { PostgresLog, type PostgresStatus, PostgresSupervisor, type SupervisorOptions } from './postgres-supervisor.ts';

const MAJOR_VERSION = '18';
/** The role of the running service. It may change rows and nothing else (role-grants.ts). */
const RUNTIME_ROLE = 'palestra_runtime';
const RETRY_MS = 250;
const IN_USE_LIMIT_MS = 15_000;
const run = promisify(execFile);

/** The embedded PostgreSQL cannot start; the message is one line that says what to do. */
export class EmbeddedPostgresError extends Error {}

/**
 * Size of PostgreSQL's page cache: a sixteenth of the memory, at least 128 MB and at most 1 GB, which holds the narrow rows of a million
 * rollouts. Only pages that were read take memory. `memory`: bytes that this process may use.
 */
export const sharedMegabytes = (memory: number): number => Math.max(128, Math.min(1_024, Math.floor(memory / 16 / 1_048_576)));

export interface RunningPostgres {
  /** For the running service: a role that `migrate` creates. */
  url: string;
  /** For `migrate`: the superuser. */
  migrationUrl: string;
  status(): PostgresStatus;
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL with its data in `<folder>/data`, and restarts it when it ends. It also works after `kill -9` of all processes: a
 * server that outlived its parent is stopped first, and PostgreSQL removes the lock file of a dead server.
 */
export async function startEmbeddedPostgres(folder: string, options: Partial<SupervisorOptions> = {}): Promise<RunningPostgres> {
  const databaseDir = path.join(folder, 'data');
  await mkdir(folder, { recursive: true });
  await assertVersionAndOwner(databaseDir);
  await stopOrphan(databaseDir);

  const password = await readOrCreatePassword(path.join(folder, 'password'));
  const log = new PostgresLog();
  const server = new PostgresServer({
    databaseDir,
    choosePort: freePort,
    password,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: [
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'max_connections=200',
      '-c',
      `shared_buffers=${sharedMegabytes(Math.min(totalmem(), process.constrainedMemory() || Infinity))}MB`,
      // After `kill -9` a start replays up to this much: 15 s per GB of small changes, measured.
      '-c',
      'max_wal_size=512MB',
      // Halves the log of uploads, for the same processor time: the first change of a page after a checkpoint writes the whole page.
      '-c',
      'wal_compression=pglz',
      // Reads the pages that were in the cache before a restart, in the background.
      '-c',
      'shared_preload_libraries=pg_prewarm',
    ],
    onLog: (text) => log.add(text),
  });
  const fresh = !(await exists(path.join(databaseDir, 'PG_VERSION')));
  try {
    if (fresh) await server.initialise();
    await startPatiently(server, log);
  } catch (error) {
    if (fresh) await rm(databaseDir, { recursive: true, force: true });
    throw new EmbeddedPostgresError(`PostgreSQL did not start: ${(error as Error | undefined)?.message ?? 'unknown reason'}`);
  }
  const supervisor = new PostgresSupervisor(server, log, { draining: new AbortController().signal, onEnd: () => {}, ...options });
  supervisor.start();
  const url = (user: string, secret: string, database: string) => `postgresql://${user}:${secret}@127.0.0.1:${server.port}/${database}`;
  await createDatabase(url('postgres', password, 'postgres'), 'palestra');
  // It does not reveal the superuser's password.
  const runtimePassword = createHmac('sha256', password).update(RUNTIME_ROLE).digest('base64url');
  return {
    url: url(RUNTIME_ROLE, runtimePassword, 'palestra'),
    migrationUrl: url('postgres', password, 'palestra'),
    status: () => supervisor.status(),
    stop: () => supervisor.stop(),
  };
}

/** After `kill -9` of a postmaster its children need a moment to end. Until then the folder counts as in use. */
function startPatiently(server: PostgresServer, log: PostgresLog): Promise<void> {
  const attempt = () => {
    log.clear();
    return server.start();
  };
  return pRetry(attempt, {
    retries: IN_USE_LIMIT_MS / RETRY_MS,
    minTimeout: RETRY_MS,
    factor: 1,
    maxRetryTime: IN_USE_LIMIT_MS,
    shouldRetry: () => log.has(/still in use|lock file "postmaster\.pid" already exists/),
  });
}

/** Creates a database unless it exists. */
async function createDatabase(url: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
}

async function assertVersionAndOwner(databaseDir: string): Promise<void> {
  if (!(await exists(databaseDir))) return;
  const { uid } = await stat(databaseDir);
  const me = process.getuid?.();
  if (me !== undefined && me !== 0 && uid !== me) {
    throw new EmbeddedPostgresError(`${databaseDir} belongs to another user (uid ${uid}): set PALESTRA_DATA_DIR, or start as that user`);
  }
  const version = await readFile(path.join(databaseDir, 'PG_VERSION'), 'utf8').catch(() => null);
  if (version !== null && version.trim() !== MAJOR_VERSION) {
    throw new EmbeddedPostgresError(
      `${databaseDir} was created by PostgreSQL ${version.trim()}, this is ${MAJOR_VERSION}: dump and restore it, or set PALESTRA_DATA_DIR`,
    );
  }
}

/** When a service is killed, its PostgreSQL keeps running. Stops that server cleanly, so that a new one can start. */
async function stopOrphan(databaseDir: string): Promise<void> {
  const pidFile = await readFile(path.join(databaseDir, 'postmaster.pid'), 'utf8').catch(() => null);
  const pid = Number(pidFile?.split('\n')[0]);
  // Another process, also another PostgreSQL, may have this pid by now. Ours names this folder or has it as its working directory.
  const folder = await realpath(databaseDir).catch(() => databaseDir);
  const isOurs = async () => {
    const command = await commandLine(pid);
    return command.includes(databaseDir) || (/\bpostgres\b/.test(command) && (await workingDirectory(pid)) === folder);
  };
  if (!Number.isInteger(pid) || pid <= 1 || !(await isOurs())) return;
  const parent = await parentOf(pid);
  if (/apps\/api\/|node/.test(await commandLine(parent)))
    throw new EmbeddedPostgresError(`another Palestra (pid ${parent}) uses this data directory`);
  process.kill(pid, 'SIGINT'); // "fast shutdown": rolls back what is open and stops
  for (let waited = 0; waited < 20_000; waited += 50) {
    if (!(await isOurs())) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new EmbeddedPostgresError(`the PostgreSQL of an earlier run (pid ${pid}) did not stop within 20 s: stop it, then start again`);
}

/** Arguments of a process, joined; empty when it does not exist. Reads `/proc` where it exists: slim images have no `ps`. */
async function commandLine(pid: number): Promise<string> {
  const fromProc = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => null);
  if (fromProc !== null) return fromProc.replaceAll('\0', ' ');
  return (await run('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))).stdout.trim();
}

/** Null where there is no `/proc`. */
const workingDirectory = (pid: number): Promise<string | null> => readlink(`/proc/${pid}/cwd`).catch(() => null);

async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => null);
  if (status !== null) return Number(/^PPid:\s*(\d+)/m.exec(status)?.[1] ?? 1);
  return Number((await run('ps', ['-o', 'ppid=', '-p', String(pid)]).catch(() => ({ stdout: '1' }))).stdout.trim());
}

async function readOrCreatePassword(file: string): Promise<string> {
  const known = await readFile(file, 'utf8').catch(() => null);
  if (known !== null) return known.trim();
  const password = randomBytes(24).toString('base64url');
  await writeFile(file, password, { mode: 0o600 });
  return password;
}

const exists = async (file: string): Promise<boolean> => (await stat(file).catch(() => null)) !== null;
