import { UsageError } from '../server-settings.ts';

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

export interface WantedEnvironment {
  /** Name of the environment, in which `-` and `_` are equal. */
  name: string;
  /** Null: any owner. */
  owner: string | null;
}

/** The environment that an image stands for: one of its name, or that of `PALESTRA_DOCKER_IMAGES`. Throws `UsageError` for an invalid image. */
export function environmentOf(image: string, env: NodeJS.ProcessEnv): WantedEnvironment {
  const name = nameOf(image);
  if (!/^[\w.-]+$/.test(name)) throw new UsageError(`Invalid image "${image}".`);
  const mapped = readMapping(env['PALESTRA_DOCKER_IMAGES']).get(canonicalName(name)) ?? name;
  const [owner, inside] = mapped.includes('/') ? mapped.split('/', 2) : [env['PALESTRA_OPENENV_OWNER'] || null, mapped];
  return { name: inside!, owner: owner ?? null };
}

export const isNamed = (wanted: WantedEnvironment, { owner, name }: { owner: string; name: string }): boolean =>
  canonicalName(name) === canonicalName(wanted.name) && (wanted.owner === null || wanted.owner === owner);

/** A text that every matching name contains: its longest word. */
export const searchTextOf = ({ name }: WantedEnvironment): string =>
  name.split(/[-_]/).reduce((longest, word) => (word.length > longest.length ? word : longest));
