import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { ContextFolder } from './build-context.ts';

/** What `serve-kit` imports. */
const ROOTS = ['@palestra/environment-kit', 'jiti'];

interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
}

/**
 * The program that serves modules of the kit with all packages that it imports, as folders of a build context below `at`: an image installs
 * nothing for it, and has exactly the version of this service.
 */
export function kitFolders(at: string): ContextFolder[] {
  const own = path.resolve(import.meta.dirname, '../../..');
  const modules = path.posix.join(at, 'node_modules');
  const places = new Map<string, string>();
  for (const name of ROOTS) addPackage(places, name, own, modules, modules);
  const folders = [...places].map(([place, folder]) => ({
    folder,
    at: place,
    isExcluded: place.includes('/@palestra/') ? isOurSource : isNotRun,
  }));
  const hosting = path.posix.join(modules, '@palestra/hosting');
  return [
    ...folders,
    {
      folder: own,
      at: hosting,
      isExcluded: (name) => !['package.json', 'dist', 'dist/target'].includes(name) && !name.startsWith('dist/target/'),
    },
  ];
}

/** In the common folder, or below the package that needs it if that has another version. */
function addPackage(places: Map<string, string>, name: string, from: string, modules: string, own: string): void {
  const folder = packageFolder(name, from);
  if (folder === null) return;
  const common = path.posix.join(modules, name);
  if (places.get(common) === folder) return;
  const place = places.has(common) ? path.posix.join(own, name) : common;
  if (places.has(place)) return;
  places.set(place, folder);
  const { dependencies = {} } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Manifest;
  for (const dependency of Object.keys(dependencies)) {
    addPackage(places, dependency, folder, modules, path.posix.join(place, 'node_modules'));
  }
}

/** Null for a package that is not installed: it is optional. */
function packageFolder(name: string, from: string): string | null {
  const paths = createRequire(path.join(from, 'package.json')).resolve.paths(name) ?? [];
  const found = paths.map((folder) => path.join(folder, name)).find((folder) => existsSync(path.join(folder, 'package.json')));
  return found === undefined ? null : realpathSync(found);
}

const isNotRun = (name: string): boolean => path.basename(name) === 'node_modules' || name.endsWith('.map');
const isOurSource = (name: string): boolean => isNotRun(name) || name === 'src';
