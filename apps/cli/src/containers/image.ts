import path from 'node:path';
import { existsSync, readFileSync } from 'node:fs';
import { UsageError } from '../server-settings.ts';
import { type ContainerEngine, EngineError } from './engine.ts';

/** The port of the server in OpenEnv images. */
const OPENENV_PORT = 8000;

/** `[registry/]owner/name[:tag][@digest]`, or `name:tag`. */
const REFERENCE = /^(?:[\w.-]+(?::\d+)?\/)*[\w.-]+(?:\/[\w.-]+|:[\w.-]+)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/;
export const looksLikeImage = (text: string): boolean => REFERENCE.test(text) && !/^\.{0,2}\//.test(text) && !/^https?:/i.test(text);

/** `ghcr.io/acme/echo-env:sha-1` -> `echo-env` */
export const nameOfImage = (image: string): string => image.replace(/@.*$/, '').split('/').at(-1)!.split(':')[0]!;

/** Pulls the image if the engine does not have it. */
export async function ensureImage(engine: ContainerEngine, image: string, signal: AbortSignal): Promise<void> {
  if ((await engine.query(['image', 'inspect', '-f', '{{.Id}}', image])) !== null) return;
  process.stderr.write(`Pulling ${image}\n`);
  try {
    await engine.run(['pull', image], { signal, progress: process.stderr.isTTY });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new Error(`The image ${image} does not exist on this machine, and ${engine.command} could not pull it: ${error.lastLine}`);
  }
}

/**
 * The port of the server in an image: 8000 if the image exposes it or exposes nothing, as OpenEnv's images do, else the exposed port.
 * Throws `UsageError` if there are several.
 */
export async function exposedPort(engine: ContainerEngine, image: string): Promise<number> {
  const text = await engine.query(['image', 'inspect', '-f', '{{json .Config.ExposedPorts}}', image]);
  const exposed = text === null ? null : (JSON.parse(text) as Record<string, unknown> | null);
  const ports = Object.keys(exposed ?? {}).flatMap((key) => (/^\d+(\/tcp)?$/.test(key) ? [Number.parseInt(key, 10)] : []));
  if (ports.length === 0 || ports.includes(OPENENV_PORT)) return OPENENV_PORT;
  if (ports.length > 1) throw new UsageError(`${image} exposes the ports ${ports.join(', ')}. Choose one with --container-port.`);
  return ports[0]!;
}

/** The data of a local service, with its API key and database. An image must not contain it. */
const DATA_FOLDER = '.palestra';

function assertDataIsIgnored(folder: string): void {
  if (!existsSync(path.join(folder, DATA_FOLDER))) return;
  const file = path.join(folder, '.dockerignore');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split(/\r?\n/) : [];
  if (lines.some((line) => /^(?:\.?\/|\*\*\/)?\.palestra(?:\/(?:\*\*)?)?$/.test(line.trim()))) return;
  throw new UsageError(`${folder} contains ${DATA_FOLDER}, which has keys. Add the line "${DATA_FOLDER}" to ${file}, and build again.`);
}

/**
 * Builds the image of a folder like `openenv build`, from `server/Dockerfile` or `Dockerfile`. Returns its tag. Throws `UsageError` for a folder
 * whose keys would be in the image.
 */
export async function buildImage(engine: ContainerEngine, folder: string, buildArgs: string[], signal: AbortSignal): Promise<string> {
  const files = [path.join(folder, 'server', 'Dockerfile'), path.join(folder, 'Dockerfile')];
  const file = files.find((one) => existsSync(one));
  if (file === undefined) throw new UsageError(`${folder}: no server/Dockerfile and no Dockerfile to build.`);
  assertDataIsIgnored(folder);
  const tag = `palestra-env/${
    path
      .basename(folder)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '') || 'environment'
  }:latest`;
  const args = ['build', '-t', tag, '-f', file, ...buildArgs.flatMap((one) => ['--build-arg', one]), folder];
  process.stderr.write(`Building ${tag} from ${path.relative(folder, file)}\n`);
  await engine.run(args, { signal, progress: true });
  return tag;
}
