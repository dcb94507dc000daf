import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readSettings } from '../server-settings.ts';
import type { ContainerFolder, ContainerRecord } from './container-folder.ts';
import { ContainerForwarder } from './forwarder.ts';
import { environmentsOf } from './image.ts';

const DEFAULT_IDLE_SECONDS = 1_800;
/** Deadline of the probe for an environment. A server that does not respond is not an error here, because the client has its own timeout. */
const PROBE_MS = 2_000;
const START_MS = 10_000;

/** Options of a forwarder. It reads API key and server URL from environment variables. */
export interface ForwardOptions {
  id: string;
  name: string;
  image: string;
  environment: string;
  port: number;
}

/** An error that is printed like Docker's: one line, exit status 125. */
export class DockerError extends Error {}

/** A random id of 64 letters. Without digits, which clients could parse as a status in an error text. */
export function newContainerId(): string {
  return Array.from({ length: 64 }, () => 'abcdef'[randomInt(6)]).join('');
}

export function baseUrlOf(environment: string): string {
  return `${readSettings(process.env).sessionUrl.replace(/\/+$/, '')}/openenv/${environment}`;
}

/** Finds the environment of an image on the server. A refusal is an error; no response is not. */
export async function resolveEnvironment(image: string): Promise<string> {
  const candidates = environmentsOf(image, process.env);
  const { apiKey, sessionUrl } = readSettings(process.env);
  for (const environment of candidates) {
    const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
    const url = `${baseUrlOf(environment)}/container/probe/health`;
    const status = await fetch(url, { headers, signal: AbortSignal.timeout(PROBE_MS) }).then(
      (answer) => answer.body?.cancel().then(() => answer.status) ?? answer.status,
      () => null,
    );
    if (status === 401 || status === 403) throw new DockerError(`${sessionUrl} refused the API key (${status}). Check PALESTRA_API_KEY.`);
    if (status !== 404) return environment;
  }
  throw new DockerError(`Unable to find image '${image}': ${sessionUrl} has no environment ${candidates.join(' or ')}.`);
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
    forwarder = await ContainerForwarder.start({ id, port, baseUrl: baseUrlOf(environment), apiKey, idleTimeoutMs: idleTimeoutMs() });
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
