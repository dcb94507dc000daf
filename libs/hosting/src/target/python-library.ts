import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { HostingError } from '../provider/hosting-error.ts';

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
  'verifiers-legacy': 'serve-verifiers-legacy',
  inspect: 'serve-inspect',
};

export const LIBRARIES = Object.keys(EXTRAS);

/** The source of the package `palestra` in a clone of this repository, and in the image of the service. */
const CLONED_PACKAGE = fileURLToPath(new URL('../../../../integrations/python', import.meta.url));

/**
 * The path from which pip installs the package `palestra`: `given`, else the source beside this service, which has its version. Never its name,
 * because anyone could publish a package with that name. Throws `hosting_unsupported` if there is none.
 */
export function palestraPackage(given: string | null = null): string {
  const found = given ?? CLONED_PACKAGE;
  const isPackage = /\.(?:whl|tar\.gz)$/.test(found) ? existsSync(found) : existsSync(path.join(found, 'pyproject.toml'));
  if (isPackage) return found;
  const missing = given === null ? 'This server does not have it.' : `${given} is neither its folder nor its wheel.`;
  throw new HostingError(
    'hosting_unsupported',
    `The environment needs the Python package "palestra". ${missing} Its operator can set PALESTRA_PYTHON_PACKAGE to the path of the wheel.`,
  );
}

/** What a build plan calls the server of a library, such as `palestra[serve-verifiers]`. `requirementAt` makes it a path for pip. */
export const libraryRequirement = (library: string): string => `palestra[${EXTRAS[library]}]`;

/** How a user installs the server of a library into a Python. */
export function installAdvice(library: string, python: string): string {
  const requirement = libraryRequirement(library);
  if (existsSync(CLONED_PACKAGE)) return `Run: ${python} -m pip install "${requirementAt(requirement, CLONED_PACKAGE)}"`;
  return `Install it from the folder integrations/python of the repository, with the extra "${EXTRAS[library]}".`;
}

export const isPalestraRequirement = (requirement: string): boolean => /^palestra(?=$|\[)/.test(requirement);

/** The requirement with a path in place of the name of the package `palestra`. Others stay as they are. */
export const requirementAt = (requirement: string, place: string): string =>
  isPalestraRequirement(requirement) ? place + requirement.slice('palestra'.length) : requirement;

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
