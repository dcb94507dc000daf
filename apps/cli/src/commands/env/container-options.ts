import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Container } from '../../containers/container.ts';
import { ContainerEngine } from '../../containers/engine.ts';
import { buildImage, ensureImage, exposedPort } from '../../containers/image.ts';
import { printableLines } from '../../output.ts';
import { UsageError } from '../../settings.ts';
import { portOf, secondsOf } from './options.ts';
import type { Target } from './target.ts';

/** What `serve` and `push` take for images; `addContainerOptions` adds them. */
export interface ContainerFlags {
  build: boolean;
  buildArg: string[];
  engine?: string;
  containerPort?: number;
  env: string[];
  memory?: string;
  cpus?: string;
  startTimeout: number;
}

const START_SECONDS = 120;
const WATCH_MS = 2_000;

export function addContainerOptions(command: Command): Command {
  const each = (value: string, earlier: string[]) => [...earlier, value];
  return command
    .option('--build', 'of a folder: build the image of its server/Dockerfile, and serve that', false)
    .option('--build-arg <name=value>', 'for --build; repeatable', each, [])
    .option('--engine <command>', 'that runs images (without: $PALESTRA_CONTAINER_ENGINE, else docker or podman, whichever answers)')
    .option('--container-port <port>', 'of the server in the image (without: what the image exposes, else 8000)', portOf)
    .option('--env <name=value>', 'variable of the container; NAME alone: as it is set here; repeatable', variables, [])
    .option('--memory <size>', 'that the container may have, as 512m or 2g')
    .option('--cpus <number>', 'that the container may use, as 1.5')
    .option('--start-timeout <seconds>', 'for an image to answer', secondsOf, START_SECONDS);
}

function variables(text: string, earlier: string[]): string[] {
  const [name] = text.split('=', 1);
  if (!name) throw new UsageError(`expected --env NAME=value, got ${text}`);
  if (name === text && process.env[name] === undefined) throw new UsageError(`--env ${name}: it is not set here`);
  return [...earlier, text];
}

export interface ContainerPlace {
  environment: string;
  host: string;
  port: number;
  detach: boolean;
}

/** An image of its own, or the one that a folder is built into. */
export type ImageSource = { image: string } | { folder: string };

/** A folder whose image is to be built: its manifest's variables and port hold for the container, unless the command line says otherwise. */
export function ofFolder(
  { folder, manifest }: Pick<Target, 'folder' | 'manifest'>,
  { env, containerPort }: Pick<ContainerFlags, 'env' | 'containerPort'>,
): { source: ImageSource; name: string; flags: Pick<ContainerFlags, 'env' | 'containerPort'> } {
  const variables = Object.entries(manifest?.variables ?? {}).map(([name, value]) => `${name}=${value}`);
  const port = containerPort ?? (manifest?.raw['port'] === undefined ? undefined : manifest.port);
  return { source: { folder }, name: manifest?.name ?? path.basename(folder), flags: { env: [...variables, ...env], containerPort: port } };
}

/** Starts the image and answers when its server does. Nothing is left running when this rejects. */
export async function startContainer(
  source: ImageSource,
  place: ContainerPlace,
  { engine: wanted, containerPort, buildArg, env, memory, cpus, startTimeout }: ContainerFlags,
  signal: AbortSignal,
): Promise<Container> {
  const purpose = 'image' in source ? `${source.image} is an image to run` : `${source.folder} is to be built`;
  const engine = await ContainerEngine.find(wanted, purpose);
  const image = 'image' in source ? source.image : await buildImage(engine, source.folder, buildArg, signal);
  await ensureImage(engine, image, signal);
  const port = containerPort ?? (await exposedPort(engine, image));
  const container = await Container.start(engine, { ...place, image, containerPort: port, env, memory, cpus });
  try {
    await container.whenHealthy(startTimeout * 1000, signal);
    return container;
  } catch (error) {
    await container.remove();
    throw error;
  }
}

/** Until the signal; starts the container again when it ended by itself. */
export async function watchContainer(container: Container, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(WATCH_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted || (await container.isRunning())) continue;
    process.stderr.write(`${printableLines(await container.ending())}\nit is started again\n`);
    await container.restart();
  }
}
