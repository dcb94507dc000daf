// Starts the processes under test and ends them by their handle.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { familyOf } from './usage.mjs';

export { freePort } from '@palestra/hosting';
export const root = path.resolve(import.meta.dirname, '../..');
export const apiKey = 'or_key_of_the_bench';
const START_LIMIT_MS = 180_000;
const STOP_LIMIT_MS = 120_000;

/** The interpreter with the official package, the other side of every comparison. */
export function findPython() {
  const file = process.env.PALESTRA_PYTHON_V167 ?? path.join(root, '.cache/venv-v167/bin/python');
  if (existsSync(file)) return file;
  console.error(
    `The bench compares with the official Python package. Install it and say where:\n` +
      `  python3 -m venv .cache/venv-v167 && .cache/venv-v167/bin/pip install openreward==0.1.167 pyarrow\n` +
      `(looked at ${file}; PALESTRA_PYTHON_V167 names another place)`,
  );
  process.exit(1);
}

async function waitForHealth(url, health, child, output) {
  for (const deadline = Date.now() + START_LIMIT_MS; Date.now() < deadline;) {
    if (child.exitCode !== null) break;
    const answer = await fetch(url + health, { signal: AbortSignal.timeout(2000) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  child.kill('SIGKILL');
  throw new Error(`${url} did not start:\n${output()}`);
}

export async function startServer(command, args, env, port, health = '/health') {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  const url = `http://127.0.0.1:${port}`;
  const ended = once(child, 'exit');
  await waitForHealth(url, health, child, () => output);
  return {
    url,
    port,
    pid: child.pid,
    ended,
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** The node arguments of `npm start`. */
const [, ...startArguments] = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).scripts.start.split(' ');

/**
 * The service with embedded PostgreSQL, authentication, ledger and the bundled environments, started as `npm start` starts it. `dataDir`:
 * the data of an earlier one; default: a new folder. `env`: more variables.
 */
export async function startPalestra({ dataDir = mkdtempSync(path.join(tmpdir(), 'palestra-bench-')), env: more = {} } = {}) {
  chmodSync(dataDir, 0o755);
  const port = await freePort();
  const env = { HOST: '127.0.0.1', PORT: String(port), PALESTRA_DATA_DIR: dataDir, PALESTRA_DEMO: '0', PALESTRA_API_KEY: apiKey, ...more };
  const profile = process.env.PALESTRA_BENCH_PROFILE ? ['--cpu-prof', `--cpu-prof-dir=${process.env.PALESTRA_BENCH_PROFILE}`] : [];
  const server = await startServer(process.execPath, [...profile, ...startArguments], env, port, '/health/ready');
  return {
    ...server,
    dataDir,
    clientEnv: {
      OPENREWARD_URL: server.url,
      OPENREWARD_API_URL: server.url,
      OPENREWARD_SESSION_URL: server.url,
      OPENREWARD_API_KEY: apiKey,
      OPENREWARD_DISABLE_UPDATE_CHECK: '1',
      NO_PROXY: '*',
    },
    /** SIGKILL for the process, its worker, environments and PostgreSQL. */
    async kill() {
      for (const { pid } of familyOf(server.pid)) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch (error) {
          // Ended with its parent.
          if (error.code !== 'ESRCH') throw error;
        }
      }
      await server.ended;
    },
  };
}

/** Ends the service and deletes its data. */
export async function discard(palestra) {
  await palestra.stop();
  rmSync(palestra.dataDir, { recursive: true, force: true });
}

/** Runs a command to its end. Returns its seconds and its output. */
export async function time(command, args, env = {}) {
  const started = performance.now();
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
  return { seconds: (performance.now() - started) / 1000, stdout };
}
