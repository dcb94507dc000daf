// Shared parts of the OpenEnv benches: a real server of the official package, the load client, addresses of Palestra.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { apiKey, freePort, root, startServer, time } from './processes.mjs';

const loadClient = path.join(root, 'bench/openenv-load.mjs');
export const headers = { Authorization: `Bearer ${apiKey}` };
/** The address of an environment of Palestra, `owner/name`, for an OpenEnv client. */
export const socketUrl = ({ port }, name) => `ws://127.0.0.1:${port}/openenv/${name}/ws`;

/** Interpreter and folder of OpenEnv's own server with the fixture environments; null if they are not installed, which fails in CI. */
export function findOpenEnv() {
  const python = process.env.PALESTRA_PYTHON_OE_0_10_0;
  const folder = path.join(process.env.PALESTRA_SHARED_DIR ?? path.join(root, '../shared'), 'conformance');
  if (python && existsSync(python) && existsSync(path.join(folder, 'openenv_fixture_envs.py'))) return { python, folder };
  const missing = `PALESTRA_PYTHON_OE_0_10_0 must name a Python with openenv 0.10.0 (it is ${python ?? 'not set'}), PALESTRA_SHARED_DIR the folder of conformance/openenv_fixture_envs.py (looked in ${folder})`;
  if (process.env.CI) throw new Error(missing);
  console.error(`Left out, what is compared with OpenEnv's own server: ${missing}`);
  return null;
}

/** OpenEnv's own server, one process, with the environment that waits. */
export async function startOpenEnv({ python, folder }) {
  const port = await freePort();
  const args = ['-m', 'uvicorn', 'openenv_fixture_envs:bench_app', '--app-dir', folder, '--host', '127.0.0.1', '--port', String(port)];
  const env = { MAX_CONCURRENT_ENVS: '2048', PYTHONDONTWRITEBYTECODE: '1' };
  return startServer(python, [...args, '--log-level', 'warning'], env, port);
}

/** Runs openenv-load.mjs to its end. */
export async function load(options) {
  const { stdout } = await time(process.execPath, [loadClient, JSON.stringify(options)]);
  return JSON.parse(stdout);
}

/**
 * Starts a load client that keeps its sockets. `reset` starts an episode on each; `end` closes them and returns how many were still open.
 */
export async function keepOpen(options) {
  const given = JSON.stringify({ kind: 'idle', ...options });
  const child = spawn(process.execPath, [loadClient, given], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  const ended = new Promise((resolve) => child.on('close', resolve));
  const said = async (line) => {
    while (!output.includes(line)) {
      if (child.exitCode !== null) throw new Error(`openenv-load.mjs ended early: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  await said('ready');
  return {
    reset: async () => {
      child.kill('SIGUSR2');
      await said('playing');
    },
    end: async () => {
      child.kill('SIGTERM');
      await ended;
      return JSON.parse(output.trim().split('\n').at(-1)).open;
    },
  };
}

/** Limit of open files of a child process. Each socket is one on either side. */
export const fileLimit = () => {
  const said = execFileSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim();
  return said === 'unlimited' ? Infinity : Number(said);
};
