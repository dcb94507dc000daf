import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { baseUrlOf, readSettings } from '../server-settings.ts';
import { DockerError } from './docker-error.ts';
import type { ContainerFolder, ContainerRecord } from './container-folder.ts';
import { ContainerForwarder } from './forwarder.ts';

const DEFAULT_IDLE_SECONDS = 1_800;
/** The run of episodes without PALESTRA_RUN. */
const DEFAULT_RUN = 'skyrl-openenv';
const START_MS = 10_000;

/** Options of a forwarder. It reads API key and server URL from environment variables. */
export interface ForwardOptions {
  id: string;
  name: string;
  image: string;
  environment: string;
  port: number;
}

/** A random id of 64 letters. Without digits, which clients could parse as a status in an error text. */
export function newContainerId(): string {
  return Array.from({ length: 64 }, () => 'abcdef'[randomInt(6)]).join('');
}

/** Starts the forwarder as a detached process and resolves when it listens. */
export async function startDetached(main: string, options: ForwardOptions): Promise<void> {
  const child = spawn(process.execPath, [main, 'forward', JSON.stringify(options)], {
    detached: true,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const signal = AbortSignal.timeout(START_MS);
  const [message] = (await Promise.race([once(child, 'message', { signal }), once(child, 'exit', { signal })])) as [unknown];
  if (message !== 'listening') throw new DockerError(typeof message === 'string' ? message : `the forwarder ended with ${String(message)}`);
  child.disconnect();
  child.unref();
}

/** Runs the forwarder in this process until `docker stop`, a signal or the idle timeout ends it. */
export async function forward(folder: ContainerFolder, options: ForwardOptions): Promise<void> {
  const { id, environment, port } = options;
  let forwarder: ContainerForwarder;
  try {
    const { apiKey } = readSettings(process.env);
    const run = process.env['PALESTRA_RUN'] || DEFAULT_RUN;
    const idle = idleTimeoutMs();
    forwarder = await ContainerForwarder.start({ id, port, baseUrl: baseUrlOf(environment), apiKey, run, idleTimeoutMs: idle });
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    throw new DockerError(isTaken ? `Bind for 127.0.0.1:${port} failed: port is already allocated.` : (error as Error).message);
  }
  const record: ContainerRecord = { ...options, port: forwarder.port, pid: process.pid };
  await folder.add(record);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => void forwarder.end());
  process.send?.('listening');
  await forwarder.ended;
  await folder.remove(id);
}

function idleTimeoutMs(): number {
  const seconds = Number(process.env['PALESTRA_DOCKER_IDLE_SECONDS'] || DEFAULT_IDLE_SECONDS);
  if (!(seconds > 0)) throw new DockerError('PALESTRA_DOCKER_IDLE_SECONDS must be a number of seconds above 0.');
  return seconds * 1000;
}
