import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { freePort } from '@palestra/hosting';
import { runtimeRole } from './runtime-role.ts';

const MAIN = path.resolve(import.meta.dirname, '../../apps/worker/dist/main.js');

/** A healthy worker process beside an API with this database and data directory. It ends with the test at the latest. */
export async function spawnWorker(databaseUrl: string, dataDir: string): Promise<ChildProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, [MAIN], {
    stdio: 'ignore',
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      DATABASE_URL: runtimeRole(databaseUrl).runtime,
      DATABASE_POOL_SIZE: '8',
      PALESTRA_DATA_DIR: dataDir,
      PALESTRA_WORKER_PORT: String(port),
    },
  });
  onTestFinished(() => killed(child));
  const isHealthy = async () => (await fetch(`http://127.0.0.1:${port}/health`).catch(() => null))?.ok;
  await expect.poll(isHealthy, { timeout: 90_000, interval: 100 }).toBe(true);
  return child;
}

export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
