import path from 'node:path';
import type { ContextFolder } from './build-context.ts';

/** What pip needs of the source of the package. */
const SOURCES = new Set(['pyproject.toml', 'src', 'README.md', 'LICENSE']);

/** Name of the file, if the package is a wheel or a source archive; empty for a folder. */
export const wheelName = (place: string): string => (/\.(?:whl|tar\.gz)$/.test(place) ? path.basename(place) : '');

/** The Python package `palestra` as a folder of a build context. */
export function pythonPackageFolder(place: string, at: string): ContextFolder {
  const wheel = wheelName(place);
  if (wheel !== '') return { folder: path.dirname(place), at, isExcluded: (name) => name !== wheel };
  return { folder: place, at, isExcluded: (name) => !SOURCES.has(name.split('/')[0]!) || path.basename(name) === '__pycache__' };
}
