import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { type PythonProcess, spawnPython } from './fork-server.ts';
import { pythonFolder, run } from './python.ts';

/** Interpreters of OpenEnv's generations, each with one version of its package. */
export type OpenEnvPython =
  | 'PALESTRA_PYTHON_OE_0_10_0'
  | 'PALESTRA_PYTHON_OE_0_5_0'
  | 'PALESTRA_PYTHON_OE_0_4_1'
  | 'PALESTRA_PYTHON_OE_0_3_0'
  | 'PALESTRA_PYTHON_OE_0_2_3'
  | 'PALESTRA_PYTHON_OE_0_1_1';

/** Environments of /work/shared/conformance/openenv_fixture_envs.py, which need the newest package. */
export type FixtureApp = 'guess_app' | 'tools_app' | 'bench_app' | 'broken_app';

export interface OpenEnvOptions {
  python: OpenEnvPython;
  /** A fixture app, or `module:app` of tests/conformance/python (or of `folder`). */
  app: FixtureApp | `${string}:${string}`;
  folder?: string;
  /** MAX_CONCURRENT_ENVS, FIXTURE_SESSION_TIMEOUT, OPENENV_MODE. */
  env?: Record<string, string>;
  /** Processes of the server; each has its own sessions. */
  workers?: number;
  port?: number;
}

export interface OpenEnvServerProcess {
  url: string;
  port: number;
  /** What it has printed so far. */
  output(): string;
  /** At once, without a goodbye to anybody. */
  stop(): Promise<void>;
}

/** Throws when it is missing: a proof that could not run is a failure, never a skip. */
export function openEnvPython(name: OpenEnvPython): string {
  const file = process.env[name];
  if (!file || !existsSync(file)) throw new Error(`${name} must name a Python interpreter; it is ${file ?? 'not set'}`);
  return file;
}

/** `shared/conformance`, outside of the tree. */
export function conformanceFolder(): string {
  const folder = path.join(process.env['PALESTRA_SHARED_DIR'] ?? path.resolve(import.meta.dirname, '../../../../shared'), 'conformance');
  if (!existsSync(folder)) throw new Error(`PALESTRA_SHARED_DIR must hold conformance; looked at ${folder}`);
  return folder;
}

/** A real OpenEnv server, answering `/health` when this resolves (5 s to 20 s). */
export async function startOpenEnv(options: OpenEnvOptions): Promise<OpenEnvServerProcess> {
  const fixture = !options.app.includes(':');
  const folder = options.folder ?? (fixture ? conformanceFolder() : pythonFolder);
  const app = fixture ? `openenv_fixture_envs:${options.app}` : options.app;
  const port = options.port ?? (await freePort());
  const workers = options.workers ?? 1;
  const args = ['-m', 'uvicorn', app, '--host', '127.0.0.1', '--port', String(port), '--log-level', 'warning'];
  const env = { PYTHONUNBUFFERED: '1', ...options.env };
  const child =
    workers === 1
      ? spawnPython(openEnvPython(options.python), args, { cwd: folder, env })
      : // Its workers are its children: in a group of their own, they end with it.
        spawn(openEnvPython(options.python), [...args, '--workers', String(workers)], {
          cwd: folder,
          stdio: ['ignore', 'pipe', 'pipe'],
          detached: true,
          env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', NO_PROXY: '*', ...env },
        });
  let output = '';
  child.stdout!.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr!.on('data', (data: Buffer) => (output += data.toString()));
  const stop = () => end(child);
  const url = `http://127.0.0.1:${port}`;
  try {
    await waitUntilHealthy(url, child, () => output);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, port, output: () => output, stop };
}

/** What `openenv init` makes, served as its README says: an echo with reward and metadata, one session. */
export async function startScaffold(options: Pick<OpenEnvOptions, 'python' | 'env'>): Promise<OpenEnvServerProcess & { folder: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-scaffold-'));
  try {
    const openenv = path.join(path.dirname(openEnvPython(options.python)), 'openenv');
    const made = await run(openenv, ['init', 'my_env'], { cwd: folder });
    if (made.code !== 0) throw new Error(`openenv init ended with ${made.code}:\n${made.output}`);
    const served = await startOpenEnv({ ...options, app: 'server.app:app', folder: path.join(folder, 'my_env') });
    const stop = async () => {
      await served.stop();
      rmSync(folder, { recursive: true, force: true });
    };
    return { ...served, stop, folder };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function waitUntilHealthy(url: string, child: ChildProcess | PythonProcess, output: () => string): Promise<void> {
  const deadline = Date.now() + 150_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`the OpenEnv server ended with ${child.exitCode}:\n${output()}`);
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error(`the OpenEnv server did not start:\n${output()}`);
}

async function end(child: ChildProcess | PythonProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  if ('pid' in child) process.kill(-child.pid!, 'SIGKILL');
  else child.kill('SIGKILL');
  await ended;
}
