import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from '@palestra/hosting';
import { Container } from '../../containers/container.ts';
import { ContainerEngine } from '../../containers/engine.ts';
import { buildImage, ensureImage, exposedPort } from '../../containers/image.ts';
import { printableLines } from '../../output.ts';
import { UsageError } from '../../settings.ts';

/** The options of `serve` and `push` for images, which `addContainerOptions` (apps/cli/src/program/container-options.ts) adds. */
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

const WATCH_MS = 2_000;

export interface ContainerAddress {
  environment: string;
  host: string;
  port: number;
  detach: boolean;
}

/** An image, or a folder to build one from. */
export type ImageSource = { image: string } | { folder: string };

/** The image source of a folder. Variables and port of its manifest apply to the container unless the command line overrides them. */
export function folderSource(
  { kind, folder, manifest }: Target,
  { env, containerPort }: Pick<ContainerFlags, 'env' | 'containerPort'>,
): { source: ImageSource; name: string; flags: Pick<ContainerFlags, 'env' | 'containerPort'> } {
  if (kind === 'library') throw new UsageError('--build needs a folder, not an environment of a Python library.');
  const variables = Object.entries(manifest?.variables ?? {}).map(([name, value]) => `${name}=${value}`);
  const port = containerPort ?? (manifest?.raw['port'] === undefined ? undefined : manifest.port);
  return { source: { folder }, name: manifest?.name ?? path.basename(folder), flags: { env: [...variables, ...env], containerPort: port } };
}

/** Starts the image and resolves when its server responds. Nothing keeps running if this rejects. */
export async function startContainer(
  source: ImageSource,
  address: ContainerAddress,
  { engine: engineName, containerPort, buildArg, env, memory, cpus, startTimeout }: ContainerFlags,
  signal: AbortSignal,
): Promise<Container> {
  const purpose = 'image' in source ? `run the image ${source.image}` : `build ${source.folder}`;
  const engine = await ContainerEngine.find(engineName, purpose);
  const image = 'image' in source ? source.image : await buildImage(engine, source.folder, buildArg, signal);
  await ensureImage(engine, image, signal);
  const port = containerPort ?? (await exposedPort(engine, image));
  const container = await Container.start(engine, { ...address, image, containerPort: port, env, memory, cpus });
  try {
    await container.whenHealthy(startTimeout * 1000, signal);
    return container;
  } catch (error) {
    await container.remove();
    throw error;
  }
}

/** Restarts the container when it ends, until the signal aborts. */
export async function watchContainer(container: Container, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(WATCH_MS, undefined, { signal }).catch(() => {});
    if (signal.aborted || (await container.isRunning())) continue;
    process.stderr.write(`${printableLines(await container.ending())}\nRestarting it.\n`);
    await container.restart();
  }
}
