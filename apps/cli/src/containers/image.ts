import path from 'node:path';
import { existsSync } from 'node:fs';
import { UsageError } from '../server-settings.ts';
import { type ContainerEngine, EngineError } from './engine.ts';

/** Where the servers of OpenEnv images listen. */
const OPENENV_PORT = 8000;

/** `[registry/]owner/name[:tag][@digest]`, or `name:tag`: what a bare word of the command line may be besides a path. */
const REFERENCE = /^(?:[\w.-]+(?::\d+)?\/)*[\w.-]+(?:\/[\w.-]+|:[\w.-]+)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/;
export const looksLikeImage = (text: string): boolean => REFERENCE.test(text) && !/^\.{0,2}\//.test(text) && !/^https?:/i.test(text);

/** `ghcr.io/acme/echo-env:sha-1` -> `echo-env` */
export const nameOfImage = (image: string): string => image.replace(/@.*$/, '').split('/').at(-1)!.split(':')[0]!;

/** Sees to it that the engine has the image. Throws an error that says why it has not. */
export async function ensureImage(engine: ContainerEngine, image: string, signal: AbortSignal): Promise<void> {
  if ((await engine.ask(['image', 'inspect', '-f', '{{.Id}}', image])) !== null) return;
  process.stderr.write(`${image} is not on this machine; pulling it\n`);
  try {
    await engine.run(['pull', image], { signal, progress: process.stderr.isTTY });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new Error(`there is no image ${image} on this machine, and ${engine.command} could not pull it: ${error.lastLine}`);
  }
}

/**
 * The port of a container that its server listens on: 8000 where the image exposes it or exposes nothing, as OpenEnv's images do, else the one that
 * it exposes. Throws `UsageError` where that is not one.
 */
export async function exposedPort(engine: ContainerEngine, image: string): Promise<number> {
  const text = await engine.ask(['image', 'inspect', '-f', '{{json .Config.ExposedPorts}}', image]);
  const exposed = text === null ? null : (JSON.parse(text) as Record<string, unknown> | null);
  const ports = Object.keys(exposed ?? {}).flatMap((key) => (/^\d+(\/tcp)?$/.test(key) ? [Number.parseInt(key, 10)] : []));
  if (ports.length === 0 || ports.includes(OPENENV_PORT)) return OPENENV_PORT;
  if (ports.length > 1) throw new UsageError(`${image} exposes the ports ${ports.join(', ')}; say which with --container-port`);
  return ports[0]!;
}

/** Builds a folder's image as `openenv build` does, by `server/Dockerfile` or else `Dockerfile`; answers its id. */
export async function buildImage(engine: ContainerEngine, folder: string, buildArgs: string[], signal: AbortSignal): Promise<string> {
  const files = [path.join(folder, 'server', 'Dockerfile'), path.join(folder, 'Dockerfile')];
  const file = files.find((one) => existsSync(one));
  if (file === undefined) throw new UsageError(`${folder}: neither server/Dockerfile nor Dockerfile is there to build`);
  const tag = `palestra-env/${
    path
      .basename(folder)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '') || 'environment'
  }:latest`;
  const args = ['build', '-t', tag, '-f', file, ...buildArgs.flatMap((one) => ['--build-arg', one]), folder];
  process.stderr.write(`building ${tag} by ${path.relative(folder, file)}\n`);
  await engine.run(args, { signal, progress: true });
  return tag;
}
