import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { type PythonProcess, spawnPython } from './fork-server.ts';

/** The official Python packages. They live outside the tree: `.ci/run` installs them and names them in these variables. */
const toolVariables = {
  v167: 'PALESTRA_PYTHON_V167',
  v112: 'PALESTRA_PYTHON_V112',
  ors: 'PALESTRA_PYTHON_ORS',
  skyrl: 'PALESTRA_PYTHON_SKYRL',
  /** scipy and statsmodels. */
  stats: 'PALESTRA_PYTHON_STATS',
} as const;
export type PythonName = keyof typeof toolVariables;

/** Throws when it is missing: a proof that could not run is a failure, never a skip. */
export function python(name: PythonName): string {
  const file = process.env[toolVariables[name]];
  if (!file || !existsSync(file)) throw new Error(`${toolVariables[name]} must name a Python interpreter; it is ${file ?? 'not set'}`);
  return file;
}

export function sdist(name: 'openreward-0.1.167' | 'openreward-0.1.112' | 'ors_sdk-0.1.0'): string {
  const folder = path.join(process.env['PALESTRA_SDIST_DIR'] ?? '', name);
  if (!existsSync(folder)) throw new Error(`PALESTRA_SDIST_DIR must hold the unpacked ${name}; looked at ${folder}`);
  return folder;
}

export function recording(name: string): string {
  const shared = process.env['PALESTRA_SHARED_DIR'] ?? path.resolve(import.meta.dirname, '../../../../shared');
  const file = path.join(shared, 'reference/recordings', `${name}.jsonl`);
  if (!existsSync(file)) throw new Error(`PALESTRA_SHARED_DIR must hold reference/recordings/${name}.jsonl; looked at ${file}`);
  return file;
}

export const pythonFolder = path.resolve(import.meta.dirname, '../python');

export interface Finished {
  code: number | null;
  /** stdout and stderr as they came */
  output: string;
  stdout: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
}

export async function run(command: string, args: string[], options: RunOptions = {}): Promise<Finished> {
  const env = { OPENREWARD_DISABLE_UPDATE_CHECK: '1', ...options.env };
  const child = spawnPython(command, args, { cwd: options.cwd ?? pythonFolder, env });
  let output = '';
  let stdout = '';
  child.stdout!.on('data', (data: Buffer) => {
    output += data.toString();
    stdout += data.toString();
  });
  child.stderr!.on('data', (data: Buffer) => (output += data.toString()));
  let timer: NodeJS.Timeout | undefined;
  // A first program waits until its packages are imported.
  child.once('spawn', () => (timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 120_000)));
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, output, stdout };
}

/** Runs a script of `tests/conformance/python`; it prints one JSON document as its last line. */
export async function runScript(interpreter: PythonName, script: string, args: string[], env: Record<string, string>): Promise<unknown> {
  const finished = await run(python(interpreter), [path.join(pythonFolder, script), ...args], { env });
  if (finished.code !== 0) throw new Error(`${script} (${interpreter}) ended with ${finished.code}:\n${finished.output}`);
  return JSON.parse(finished.stdout.trimEnd().split('\n').at(-1) ?? 'null');
}

export interface Upstream {
  url: string;
  stop(): Promise<void>;
}

export interface UpstreamOptions {
  interpreter: PythonName;
  module: string;
  classes: string[];
  /** Folders to import the module from. */
  folders?: string[];
  dropRoutes?: string[];
  env?: Record<string, string>;
}

/** Classes of a Python module behind the official Python server. */
export async function startUpstream(options: UpstreamOptions): Promise<Upstream> {
  const port = await freePort();
  const child = spawnPython(
    python(options.interpreter),
    [
      path.join(pythonFolder, 'serve_suite.py'),
      options.module,
      options.classes.join(','),
      '--port',
      String(port),
      '--library',
      options.interpreter === 'ors' ? 'ors' : 'openreward',
      ...(options.folders ?? []).flatMap((folder) => ['--path', folder]),
      ...(options.dropRoutes ?? []).flatMap((route) => ['--drop-route', route]),
    ],
    { cwd: pythonFolder, env: options.env ?? {} },
  );
  let output = '';
  child.stdout!.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr!.on('data', (data: Buffer) => (output += data.toString()));
  const url = `http://127.0.0.1:${port}`;
  await waitUntilHealthy(url, child, () => output);
  return { url, stop: () => end(child) };
}

async function waitUntilHealthy(url: string, child: ChildProcess | PythonProcess, output: () => string): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`the Python server ended with ${child.exitCode}:\n${output()}`);
    const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the Python server did not start:\n${output()}`);
}

async function end(child: ChildProcess | PythonProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
