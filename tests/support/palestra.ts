import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { freePort } from '@palestra/hosting';
import { createOrganisation } from './organisation.ts';
import { runtimeRole } from './runtime-role.ts';
// Declares the values of postgres.global.ts.
import type {} from './postgres.global.ts';

/** The built service as a user starts it: a child process that tests reach over HTTP only. */
export interface Palestra {
  url: string;
  port: number;
  apiKey: string;
  /** Folder for its files. */
  dataDir: string;
  /** The namespace of the first key. */
  namespace: string;
  /** null if the service runs its own PostgreSQL. */
  databaseUrl: string | null;
  /** Id of the running process. */
  pid(): number;
  /** Everything that it has printed. */
  output(): string;
  /** `kill -9`, without cleanup. */
  kill(): Promise<void>;
  /** SIGTERM, as in a deployment: it drains and keeps its data. Returns its exit code. */
  terminate(): Promise<number | null>;
  /** SIGHUP with a closed output, as when a terminal closes. */
  hangUp(): Promise<void>;
  /** Starts it on the same data and port after `kill`, `terminate` or `hangUp`. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface PalestraOptions {
  port?: number;
  /** Additional environment variables. */
  env?: Record<string, string>;
  dataDir?: string;
  /** Use the PostgreSQL of the service, as `npm start` does, instead of the shared one. */
  ownPostgres?: boolean;
  /** The user and group id of the process. Needs root. */
  uid?: number;
  /** The kernel kills the process when this one ends. */
  endsWithParent?: boolean;
  /** Another copy of the built service and of Node, for a user without access to the original. */
  from?: { root: string; node: string };
}

const root = path.resolve(import.meta.dirname, '../..');
export const testApiKey = 'or_testkey_of_the_suite_Kq7Vw2Xz9Bn4';

/** An empty database in the PostgreSQL of postgres.global.ts. */
async function createDatabase(): Promise<string> {
  const base = inject('postgresUrl');
  const name = `palestra_${randomUUID().replaceAll('-', '')}`;
  const client = new pg.Client({ connectionString: `${base}/postgres` });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  return `${base}/${name}`;
}

function databaseVariables(url: string): Record<string, string> {
  const { runtime, migration } = runtimeRole(url);
  return { DATABASE_URL: runtime, ...(migration !== null && { DATABASE_MIGRATION_URL: migration }) };
}

async function waitForHealth(url: string, child: ChildProcess, output: () => string): Promise<void> {
  const deadline = Date.now() + 170_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`palestra ended with ${child.exitCode} while starting:\n${output()}`);
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`palestra did not become healthy within 170 s:\n${output()}`);
}

/** The running services. They end with this worker. */
const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));
// The pool ends a worker by a signal, or by closing its channel when the run is interrupted.
process.once('SIGTERM', () => process.exit());
process.once('disconnect', () => process.exit());

export async function startPalestra(options: PalestraOptions = {}): Promise<Palestra> {
  const port = options.port ?? (await freePort());
  const url = `http://127.0.0.1:${port}`;
  const dataDir = options.dataDir ?? mkdtempSync(path.join(tmpdir(), 'palestra-test-'));
  if (!options.dataDir) chmodSync(dataDir, 0o755);
  const databaseUrl = options.ownPostgres ? null : (options.env?.['DATABASE_URL'] ?? (await createDatabase()));
  let output = '';
  let child: ChildProcess;

  const start = async () => {
    const from = options.from ?? { root, node: process.execPath };
    const command = [from.node, path.join(from.root, 'apps/api/dist/main.js')];
    if (options.endsWithParent) command.unshift('setpriv', '--pdeathsig', 'KILL');
    child = spawn(command[0]!, command.slice(1), {
      cwd: from.root,
      ...(options.uid !== undefined && { uid: options.uid, gid: options.uid }),
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        HOST: '127.0.0.1',
        PORT: String(port),
        PALESTRA_DATA_DIR: dataDir,
        PALESTRA_DEMO: '0',
        // A test can read its upload at once, on any machine.
        PALESTRA_READ_WAIT_MS: '30000',
        PALESTRA_API_KEY: testApiKey,
        PALESTRA_BUNDLED_ENVIRONMENTS: '0',
        DATABASE_POOL_SIZE: '6',
        ...options.env,
        ...(databaseUrl === null ? {} : databaseVariables(databaseUrl)),
      },
    });
    const started = child;
    running.add(started);
    started.once('exit', () => running.delete(started));
    const collect = (data: Buffer) => (output += data.toString());
    child.stdout!.on('data', collect);
    child.stderr!.on('data', collect);
    await waitForHealth(url, child, () => output);
  };
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const ended = once(child, 'exit');
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
    await ended;
    clearTimeout(timer);
    return child.exitCode;
  };

  await start();
  const apiKey = options.env?.['PALESTRA_API_KEY'] ?? testApiKey;
  const me = await fetch(`${url}/v1/namespace/current?type=user`, { headers: { 'x-api-key': apiKey } });
  const { name } = (await me.json()) as { name: string };
  return {
    url,
    port,
    apiKey,
    dataDir,
    namespace: name,
    databaseUrl,
    pid: () => child.pid!,
    output: () => output,
    kill: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
    hangUp: async () => {
      child.stdout!.destroy();
      child.stderr!.destroy();
      await end('SIGHUP');
    },
    restart: start,
    stop: async () => {
      await end('SIGTERM');
      // Instances that end write into it.
      if (!options.dataDir) rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Files of one worker share its modules (`isolate: false`), so there is one service per worker. */
let shared: Promise<Palestra> | undefined;

async function startShared(): Promise<Palestra> {
  // The handlers above do not run if Vitest kills the worker because it does not end within half a second.
  const palestra = await startPalestra({ endsWithParent: process.platform === 'linux', env: { PALESTRA_BUNDLED_ENVIRONMENTS: '1' } });
  process.once('exit', () => rmSync(palestra.dataDir, { recursive: true, force: true }));
  return palestra;
}

/** The part of a service that files may use when they share it. */
export type SharedPalestra = Omit<Palestra, 'kill' | 'terminate' | 'hangUp' | 'restart'>;

/** A new organisation in the shared service of this worker, which hosts the bundled environments. `stop` does not end the service. */
export async function sharedPalestra(): Promise<SharedPalestra> {
  shared ??= startShared();
  const palestra = await shared;
  const { name, apiKey } = await createOrganisation(palestra.url, palestra.apiKey);
  const { url, port, dataDir, databaseUrl, pid, output } = palestra;
  return { url, port, dataDir, databaseUrl, pid, output, apiKey, namespace: name, stop: async () => {} };
}

type Organisation = Pick<Palestra, 'url' | 'apiKey' | 'namespace'>;

/** Registers a running ORS server, as `palestra env add` does, and waits until it is ready. */
export const addRemote = (palestra: Organisation, name: string, url: string, isPrivate = false): Promise<string> =>
  addEnvironment(palestra, name, { kind: 'remote', url }, isPrivate);

/** Registers a running OpenEnv server as a public environment. */
export const addOpenEnv = (palestra: Organisation, name: string, url: string): Promise<string> =>
  addEnvironment(palestra, name, { kind: 'openenv', url }, false);

async function addEnvironment(palestra: Organisation, name: string, source: object, isPrivate: boolean): Promise<string> {
  const answer = await fetch(`${palestra.url}/v1/environments`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ name, namespace: palestra.namespace, description: '', isPrivate, source }),
  });
  if (!answer.ok) throw new Error(`POST /v1/environments: ${answer.status} ${await answer.text()}`);
  return `${palestra.namespace}/${name}`;
}
