import { HostingError } from '../../provider/hosting-error.ts';
import type { LogLine } from '../../provider/provider.port.ts';
import { type Engine, EngineError, isStatus } from '../engine/engine.ts';
import { names } from '../engine/names.ts';
import { BuildOutput } from './build-output.ts';
import { parseImageName } from './image-name.ts';
import { readLines } from './json-lines.ts';

export interface ImageInspection {
  Id: string;
  Size: number;
  Os?: string;
  Architecture?: string;
  RepoTags?: string[] | null;
  RepoDigests?: string[] | null;
  /** Podman leaves `OnBuild` out. */
  Config?: { User?: string; ExposedPorts?: Record<string, object> | null; OnBuild?: string[] | null } | null;
}

/** Of what an engine says about a pull: a registry that a tenant names may have written it. */
const MAX_REASON_CHARS = 200;

/** Null if the engine does not have it. */
export async function inspectImage(engine: Engine, name: string, signal: AbortSignal): Promise<ImageInspection | null> {
  // No image has such a name, and the path of the request would mean something else.
  if (!/^[\w.:/@-]+$/.test(name) || name.includes('..')) return null;
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

/** The same with a tag of the installation for what is pulled, so that `prune` removes it when it is not used. */
export async function ensureTagged(
  engine: Engine,
  installation: string,
  name: string,
  onLine: (line: LogLine) => void,
  signal: AbortSignal,
): Promise<ImageInspection> {
  const found = await ensureInspected(engine, name, onLine, signal);
  if (!found.isPulled) return found.image;
  const id = normalId(found.image.Id);
  const query = { repo: names.images(installation), tag: `pulled-${id.slice(7, 47)}` };
  await engine.request({ method: 'POST', path: `/images/${id}/tag`, query }, signal);
  return found.image;
}

/** `isPulled`: the engine did not have it before. */
export async function ensureInspected(engine: Engine, name: string, onLine: (line: LogLine) => void, signal: AbortSignal) {
  const found = await inspectImage(engine, name, signal);
  if (found) return { image: found, isPulled: false };
  onLine({ at: new Date(), stream: 'stdout', text: `Pulling ${name}` });
  await pullImage(engine, name, onLine, signal);
  const image = await inspectImage(engine, name, signal);
  if (!image) throw new HostingError('build_failed', `The engine pulled ${name} and does not have it. Deploy again.`);
  return { image, isPulled: true };
}

async function pullImage(engine: Engine, name: string, onLine: (line: LogLine) => void, signal: AbortSignal): Promise<void> {
  const { repository, tag } = parseImageName(name);
  if (repository.startsWith('localhost/')) throw absent(name, 'its name is that of a local image');
  // The error, without what follows its beginning, is in the failure.
  const output = new BuildOutput((line) => line.stream === 'stdout' && onLine(line));
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
    `The image ${name} is not on the engine and cannot be pulled: ${reasonOf(why)}. Check its name, and that the engine may read it.`,
  );

const reasonOf = (text: string): string =>
  text
    .trim()
    .split(/[\r\n]/)[0]!
    .slice(0, MAX_REASON_CHARS);

/** Podman leaves the algorithm out. */
export const normalId = (id: string): string => (id.startsWith('sha256:') ? id : `sha256:${id}`);
