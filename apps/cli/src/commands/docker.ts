import { fileURLToPath } from 'node:url';
import { ContainerFolder } from '../docker/container-folder.ts';
import { STOP_HEADER } from '../docker/forwarder.ts';
import { DockerError } from '../docker/docker-error.ts';
import { findEnvironment } from '../docker/find-environment.ts';
import { forward, type ForwardOptions, newContainerId, startDetached } from '../docker/start-container.ts';

const MAIN = fileURLToPath(new URL('../docker-main.js', import.meta.url));
/** Docker's exit status if a container could not be started. */
const NOT_STARTED = 125;
const STOP_MS = 1_800;

export const version = (): void => print('Client: Palestra\nServer: Palestra');
export const pull = (image: string): void => print(`${image}: nothing to pull, environments are on the server`);

export const runContainer = guarded(run);
export const stopContainers = guarded(stop);
export const removeContainers = guarded(remove);
export const forwardAsChild = guarded(forwardHere);

async function run(image: string, _command: string[], options: { detach?: boolean; name?: string; publish?: string[] }): Promise<void> {
  const id = newContainerId();
  const [published = '0', second] = options.publish ?? [];
  if (second !== undefined) throw new DockerError('Only one -p is supported: an environment has one port.');
  const environment = await findEnvironment(image);
  const forwarding: ForwardOptions = { id, name: options.name ?? id.slice(0, 12), image, environment, port: hostPort(published) };
  if (!options.detach) return forward(await ContainerFolder.open(process.env), forwarding);
  await startDetached(MAIN, forwarding);
  print(id);
}

/** `8001:8000`, `127.0.0.1:8001:8000`, `8001:8000/tcp`; `8000` alone and `0:8000` take any free port. */
function hostPort(published: string): number {
  const parts = published.replace(/\/tcp$/, '').split(':');
  const port = parts.length === 1 ? 0 : Number(parts.at(-2));
  if (parts.length > 3 || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new DockerError(`Invalid containerPort: ${published}`);
  return port;
}

async function stop(containers: string[]): Promise<void> {
  const folder = await ContainerFolder.open(process.env);
  for (const reference of containers) {
    const record = await folder.find(reference);
    if (record === null) fail(`Error response from daemon: No such container: ${reference}`, 1);
    else {
      await end(record);
      await folder.remove(record.id);
      print(reference);
    }
  }
}

/** Succeeds for unknown containers, too: a stopped container has no record. */
async function remove(containers: string[]): Promise<void> {
  const folder = await ContainerFolder.open(process.env);
  for (const reference of containers) {
    const record = await folder.find(reference);
    if (record !== null) await end(record);
    if (record !== null) await folder.remove(record.id);
    print(reference);
  }
}

/** Ends a container through its port; its process id may belong to another process by now. No response means that it has ended. */
async function end({ id, port }: { id: string; port: number }): Promise<void> {
  const request = { method: 'DELETE', headers: { [STOP_HEADER]: id }, signal: AbortSignal.timeout(STOP_MS) };
  await fetch(`http://127.0.0.1:${port}/`, request).catch(() => null);
}

async function forwardHere(options: string): Promise<void> {
  try {
    await forward(await ContainerFolder.open(process.env), JSON.parse(options) as ForwardOptions);
  } catch (error) {
    if (!process.send) throw error;
    process.send((error as Error).message);
  }
}

/** Prints failures like Docker. */
function guarded<Arguments extends unknown[]>(action: (...values: Arguments) => Promise<void>): (...values: Arguments) => Promise<void> {
  return (...values) =>
    action(...values).catch((error: Error) => fail(`docker: Error response from daemon: ${error.message}`, NOT_STARTED));
}

function fail(message: string, status: number): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = status;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
