import { HostingError } from '../../provider/hosting-error.ts';
import type { LogLine } from '../../provider/provider.port.ts';
import { type Engine, EngineError, isStatus } from '../engine/engine.ts';
import { BuildOutput } from './build-output.ts';
import { readLines } from './json-lines.ts';

export interface ImageInspection {
  Id: string;
  Size: number;
  RepoTags?: string[] | null;
  RepoDigests?: string[] | null;
  Config?: { User?: string; ExposedPorts?: Record<string, object> | null } | null;
}

/** Null if the engine does not have it. */
export async function inspectImage(engine: Engine, name: string, signal: AbortSignal): Promise<ImageInspection | null> {
  try {
    return await engine.request<ImageInspection>({ method: 'GET', path: `/images/${name}/json` }, signal);
  } catch (error) {
    if (isStatus(error, 404)) return null;
    throw error;
  }
}

/** Id of an image, which is pulled when the engine does not have it. Rejects with `build_failed`. */
export async function ensureImage(engine: Engine, name: string, deadlineMs: number, signal: AbortSignal): Promise<string> {
  const found = await inspectImage(engine, name, signal);
  if (found) return found.Id;
  await pullImage(engine, name, () => {}, AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]));
  return (await inspectImage(engine, name, signal))?.Id ?? name;
}

export async function pullImage(engine: Engine, name: string, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<void> {
  const { repository, tag } = parseImageName(name);
  const output = new BuildOutput(onLine);
  try {
    const query = { fromImage: repository, tag: tag ?? undefined };
    const stream = await engine.stream({ method: 'POST', path: '/images/create', query, deadlineMs: 120_000 }, signal);
    for await (const line of readLines(stream)) output.push(line);
  } catch (error) {
    const failure = engine.failure(error, signal);
    if (failure instanceof EngineError) throw absent(name, failure.message);
    throw failure;
  } finally {
    output.end();
  }
  if (output.failure) throw absent(name, output.failure.message);
}

const absent = (name: string, why: string) =>
  new HostingError(
    'build_failed',
    `The image ${name} is not on the engine and cannot be pulled: ${why}. Check its name, and that the engine may read it.`,
  );

/**
 * The full name of an image: Podman guesses the registry of a short one, Docker does not. `tag`: null for a name with a digest, which is part of
 * the repository; without a tag Docker would pull all.
 */
export function parseImageName(name: string): { repository: string; tag: string | null } {
  const [first = '', ...rest] = name.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const full = hasRegistry ? name : rest.length > 0 ? `docker.io/${name}` : `docker.io/library/${name}`;
  if (full.includes('@')) return { repository: full, tag: null };
  const colon = full.lastIndexOf(':');
  if (colon <= full.lastIndexOf('/')) return { repository: full, tag: 'latest' };
  return { repository: full.slice(0, colon), tag: full.slice(colon + 1) };
}
