import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Options of a Python library, as `python -m palestra.serve` takes them. */
export interface LibraryFlags {
  splitSize?: number;
  seed?: number;
  set?: string[];
  data?: string[];
  workers?: number;
  maxSessions?: number;
  deadline?: number;
}

/** A specification such as `reasoning-gym:leg_counting`, and what the command of its server adds. */
export interface LibrarySpec {
  spec: string;
  /** The library before the colon. */
  library: string;
  /** What the library calls the environment. */
  id: string;
  args: string[];
}

/** Libraries that `palestra.serve` knows, and the extra of the Python package that installs each. */
const EXTRAS: Record<string, string> = {
  'reasoning-gym': 'reasoning-gym',
  textarena: 'textarena',
  gem: 'gem',
  'skyrl-gym': 'skyrl-gym',
  verifiers: 'serve-verifiers',
  inspect: 'serve-inspect',
};

export const LIBRARIES = Object.keys(EXTRAS);

/** The source of the package `palestra` in a clone of this repository. */
const CLONED_PACKAGE = fileURLToPath(new URL('../../../../integrations/python', import.meta.url));

/** What pip installs as the package `palestra`: the folder of a clone, which has the version of this service, else the name. */
export const palestraPackage = (): string => (existsSync(path.join(CLONED_PACKAGE, 'pyproject.toml')) ? CLONED_PACKAGE : 'palestra');

/** What pip installs for the server of a library, such as `palestra[serve-verifiers]`. */
export const libraryRequirement = (library: string): string => `palestra[${EXTRAS[library]}]`;

/** Null for anything else, such as a folder or an image with the tag of an unknown library. */
export function librarySpec(argument: string, flags: LibraryFlags = {}): LibrarySpec | null {
  const colon = argument.indexOf(':');
  const library = argument.slice(0, Math.max(colon, 0));
  const id = argument.slice(colon + 1);
  if (!Object.hasOwn(EXTRAS, library) || id === '') return null;
  return { spec: argument, library, id, args: argsOf(flags) };
}

function argsOf({ splitSize, seed, set = [], data = [], workers, maxSessions, deadline }: LibraryFlags): string[] {
  const single = { '--split-size': splitSize, '--seed': seed, '--workers': workers, '--max-sessions': maxSessions, '--deadline': deadline };
  const flags = Object.entries(single).flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)]));
  return [...flags, ...set.flatMap((pair) => ['--set', pair]), ...data.flatMap((pair) => ['--data', pair])];
}
