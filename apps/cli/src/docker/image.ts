import { UsageError } from '../server-settings.ts';

/** Where the environments of images are, unless a mapping says otherwise. */
const DEFAULT_OWNER = 'palestra';
/** Of names that are tried with the signs mixed. */
const MOST_WORDS = 4;

/** `ghcr.io/acme/echo-env:sha-1` -> `echo-env` */
function nameOf(image: string): string {
  return image.split('/').at(-1)!.split('@')[0]!.split(':')[0]!;
}
/** `-` and `_` are the same in the name of an image. */
const sameFor = (name: string) => name.toLowerCase().replaceAll('-', '_');

/** `PALESTRA_DOCKER_IMAGES`: image name -> `owner/name`, or a bare name. */
function readMapping(text: string | undefined): Map<string, string> {
  if (!text) return new Map();
  let mapping: unknown;
  try {
    mapping = JSON.parse(text);
  } catch {
    throw new UsageError('PALESTRA_DOCKER_IMAGES is not JSON');
  }
  const entries = typeof mapping === 'object' && mapping !== null && !Array.isArray(mapping) ? Object.entries(mapping) : null;
  if (!entries?.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
    throw new UsageError('PALESTRA_DOCKER_IMAGES must be an object of image names and environments: {"openspiel-env": "acme/openspiel"}');
  return new Map(entries.map(([image, environment]) => [sameFor(nameOf(image)), environment]));
}

/** `owner/name` of the environments that an image may stand for, the likeliest first. */
export function environmentsOf(image: string, env: NodeJS.ProcessEnv): string[] {
  const name = nameOf(image);
  if (!/^[\w.-]+$/.test(name)) throw new UsageError(`not an image: ${image}`);
  const owner = env['PALESTRA_OPENENV_OWNER'] || DEFAULT_OWNER;
  const mapped = readMapping(env['PALESTRA_DOCKER_IMAGES']).get(sameFor(name));
  if (mapped !== undefined) return [mapped.includes('/') ? mapped : `${owner}/${mapped}`];
  const likely = [name, name.replaceAll('-', '_'), name.replaceAll('_', '-')];
  return [...new Set([...likely, ...spellings(name)])].map((spelled) => `${owner}/${spelled}`);
}

/** Every way to write a name, unless there are very many. */
function spellings(name: string): string[] {
  const words = name.split(/[-_]/);
  if (words.length > MOST_WORDS) return [];
  return words.slice(1).reduce((starts, word) => starts.flatMap((start) => [`${start}-${word}`, `${start}_${word}`]), [words[0]!]);
}
