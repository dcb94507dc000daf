import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readSettings } from '../server-settings.ts';
import type { ContainerFolder, ContainerRecord } from './container-folder.ts';
import { ContainerForwarder } from './forwarder.ts';
import { environmentsOf } from './image.ts';

const DEFAULT_IDLE_SECONDS = 1_800;
/** For the question which environment there is. A server that does not answer is left to the client's own patience. */
const PROBE_MS = 2_000;
const START_MS = 10_000;

/** What a forwarder is told when it starts, by its parent or by itself. The key and the server are in its environment. */
export interface ForwardOptions {
  id: string;
  name: string;
  image: string;
  environment: string;
  port: number;
}

/** docker's way to fail: one line, exit status 125. */
export class DockerError extends Error {}

/** Sixty-four letters: no digits that a client could take for a status in the text of an error. */
export function newContainerId(): string {
  return Array.from({ length: 64 }, () => 'abcdef'[randomInt(6)]).join('');
}

export function baseUrlOf(environment: string): string {
  return `${readSettings(process.env).sessionUrl.replace(/\/+$/, '')}/openenv/${environment}`;
}

/** The environment of an image that the server has. Refusals are errors; silence is not. */
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
    if (status === 401 || status === 403) throw new DockerError(`${sessionUrl} refuses the key (${status}). Is PALESTRA_API_KEY set?`);
    if (status !== 404) return environment;
  }
  throw new DockerError(`Unable to find image '${image}': ${sessionUrl} has no environment ${candidates.join(' or ')}.`);
}

/** Runs the forwarder as a process of its own, and answers when it listens. */
export async function startDetached(main: string, options: ForwardOptions): Promise<void> {
  const child = spawn(process.execPath, [main, 'forward', JSON.stringify(options)], {
    detached: true,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const signal = AbortSignal.timeout(START_MS);
  const [said] = (await Promise.race([once(child, 'message', { signal }), once(child, 'exit', { signal })])) as [unknown];
  if (said !== 'listening') throw new DockerError(typeof said === 'string' ? said : `the forwarder ended with ${String(said)}`);
  child.disconnect();
  child.unref();
}

/** Runs the forwarder in this process until it ends: by `docker stop`, by a signal, or because nobody uses it. */
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
  if (!(seconds > 0)) throw new DockerError('PALESTRA_DOCKER_IDLE_SECONDS must be a number of seconds');
  return seconds * 1000;
}
