import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import { ContainerFolder } from '../docker/container-folder.ts';
import { STOP_HEADER } from '../docker/forwarder.ts';
import { DockerError, forward, type ForwardOptions, newContainerId, resolveEnvironment, startDetached } from '../docker/start-container.ts';

const MAIN = fileURLToPath(new URL('../docker-main.js', import.meta.url));
/** docker's exit status for what went wrong before a container ran. */
const NOT_STARTED = 125;
const STOP_MS = 1_800;

const collect = (value: string, earlier: string[] = []) => [...earlier, value];

/**
 * What OpenEnv's clients ask of Docker, for environments of a Palestra server: a container is a process that forwards a port of localhost to one
 * session (docs/skyrl-openenv.md). `integrations/skyrl-openenv/bin/docker` calls it.
 */
export function dockerCommand(): Command {
  const docker = new Command('docker')
    .description('stands in for Docker, where OpenEnv clients start environments by image')
    .enablePositionalOptions();
  docker.command('version').action(() => print('Client: Palestra\nServer: Palestra'));
  docker
    .command('run')
    .argument('<image>', 'the name of an environment, - and _ being the same; see PALESTRA_DOCKER_IMAGES')
    .argument('[command...]', 'not used')
    .option('-d, --detach', 'in the background; prints the id')
    .option('--name <name>')
    .option('-p, --publish <port>', 'port of localhost, as 8001:8000', collect)
    .option('-e, --env <variable>', 'accepted; an environment of a server has none', collect)
    .addOption(new Option('--rm', 'always so').default(true))
    .passThroughOptions()
    .action(guarded(run));
  docker.command('stop').argument('<container...>', 'ids or names').option('-t, --time <seconds>', 'not used').action(guarded(stop));
  docker.command('rm').argument('<container...>', 'ids or names').option('-f, --force').option('-v, --volumes').action(guarded(remove));
  docker
    .command('pull')
    .argument('<image>')
    .action((image: string) => print(`${image}: nothing to pull, environments are on the server`));
  docker
    .command('tag')
    .argument('<source>')
    .argument('<target>')
    .action(() => {});
  docker.command('forward', { hidden: true }).argument('<options>').action(guarded(forwardAsChild));
  return docker;
}

async function run(image: string, _command: string[], options: { detach?: boolean; name?: string; publish?: string[] }): Promise<void> {
  const id = newContainerId();
  const [published = '0', second] = options.publish ?? [];
  if (second !== undefined) throw new DockerError('an environment has one port');
  const environment = await resolveEnvironment(image);
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
  for (const asked of containers) {
    const record = await folder.find(asked);
    if (record === null) fail(`Error response from daemon: No such container: ${asked}`, 1);
    else {
      await end(record);
      await folder.remove(record.id);
      print(asked);
    }
  }
}

/** Also of what is gone already: a stopped container leaves nothing behind. */
async function remove(containers: string[]): Promise<void> {
  const folder = await ContainerFolder.open(process.env);
  for (const asked of containers) {
    const record = await folder.find(asked);
    if (record !== null) await end(record);
    if (record !== null) await folder.remove(record.id);
    print(asked);
  }
}

/** By its port, not by its process id, which may be somebody else's by now. Silence means that it is gone. */
async function end({ id, port }: { id: string; port: number }): Promise<void> {
  const request = { method: 'DELETE', headers: { [STOP_HEADER]: id }, signal: AbortSignal.timeout(STOP_MS) };
  await fetch(`http://127.0.0.1:${port}/`, request).catch(() => null);
}

async function forwardAsChild(options: string): Promise<void> {
  try {
    await forward(await ContainerFolder.open(process.env), JSON.parse(options) as ForwardOptions);
  } catch (error) {
    if (!process.send) throw error;
    process.send((error as Error).message);
  }
}

/** Failures as docker tells them. */
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
