import { UsageError } from '../server-settings.ts';

/** The owner of environments without a mapping. */
const DEFAULT_OWNER = 'palestra';
/** Names with more words are not tried with mixed separators. */
const MAX_WORDS = 4;

/** `ghcr.io/acme/echo-env:sha-1` -> `echo-env` */
function nameOf(image: string): string {
  return image.split('/').at(-1)!.split('@')[0]!.split(':')[0]!;
}
/** A canonical form in which `-` and `_` are equal. */
const canonicalName = (name: string) => name.toLowerCase().replaceAll('-', '_');

/** Parses `PALESTRA_DOCKER_IMAGES`: image name to `owner/name` or name. */
function readMapping(text: string | undefined): Map<string, string> {
  if (!text) return new Map();
  let mapping: unknown;
  try {
    mapping = JSON.parse(text);
  } catch {
    throw new UsageError('PALESTRA_DOCKER_IMAGES is not valid JSON.');
  }
  const entries = typeof mapping === 'object' && mapping !== null && !Array.isArray(mapping) ? Object.entries(mapping) : null;
  if (!entries?.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
    throw new UsageError('PALESTRA_DOCKER_IMAGES must map image names to environments, for example {"openspiel-env": "acme/openspiel"}.');
  return new Map(entries.map(([image, environment]) => [canonicalName(nameOf(image)), environment]));
}

/** Candidates for the environment of an image as `owner/name`, most likely first. */
export function environmentsOf(image: string, env: NodeJS.ProcessEnv): string[] {
  const name = nameOf(image);
  if (!/^[\w.-]+$/.test(name)) throw new UsageError(`Invalid image "${image}".`);
  const owner = env['PALESTRA_OPENENV_OWNER'] || DEFAULT_OWNER;
  const mapped = readMapping(env['PALESTRA_DOCKER_IMAGES']).get(canonicalName(name));
  if (mapped !== undefined) return [mapped.includes('/') ? mapped : `${owner}/${mapped}`];
  const likely = [name, name.replaceAll('-', '_'), name.replaceAll('_', '-')];
  return [...new Set([...likely, ...spellings(name)])].map((spelled) => `${owner}/${spelled}`);
}

/** All combinations of separators in a name, unless there are very many. */
function spellings(name: string): string[] {
  const words = name.split(/[-_]/);
  if (words.length > MAX_WORDS) return [];
  return words.slice(1).reduce((starts, word) => starts.flatMap((start) => [`${start}-${word}`, `${start}_${word}`]), [words[0]!]);
}
