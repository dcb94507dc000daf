import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { MANIFEST, type OpenEnvManifest, readManifest, withoutManifest } from './openenv-manifest.ts';
import { type LibraryFlags, librarySpec, type LibrarySpec } from './python-library.ts';

/** There is no environment at a path; printed as one line. */
export class TargetError extends Error {}

/** An environment in a folder, or of a Python library. */
export type Target =
  | { kind: 'kit'; folder: string; manifest: OpenEnvManifest | null; file: string }
  | { kind: 'openenv'; folder: string; manifest: OpenEnvManifest; server: PythonServer | null }
  | { kind: 'ors'; folder: string; manifest: null; file: string }
  | { kind: 'library'; folder: string; manifest: null; library: LibrarySpec };

/** An environment in a folder. */
export type FolderTarget = Exclude<Target, { kind: 'library' }>;

/** The module that uvicorn imports, and its working directory. */
export interface PythonServer {
  app: string;
  cwd: string;
  /** The name of the package that `cwd` itself is, for a folder that lost its name. */
  package?: string;
}

const MODULE = /\.[cm]?[jt]s$/;
/** The server of an OpenEnv folder. Many have no openenv.yaml: what the server says decides whether it is one. */
const OPENENV_SERVER = path.join('server', 'app.py');
/** The server of a folder that `orwd init` creates: it runs `Server([...]).run()` of the package `openreward` or `ors`. */
const ORS_FILE = 'server.py';
const KIT_FILES = ['environment.ts', 'environment.js', 'environment.mjs'];

/** What `targetIn` looks for, for messages. */
export const TARGET_FILES = `${MANIFEST}, ${KIT_FILES[0]}, ${ORS_FILE} or ${OPENENV_SERVER}`;

/** Finds the environment at a path. Throws `TargetError` if there is none, `ManifestError` if its manifest is invalid. */
export async function targetAt(argument: string, flags: LibraryFlags = {}): Promise<Target> {
  const library = librarySpec(argument, flags);
  if (library !== null) return { kind: 'library', folder: process.cwd(), manifest: null, library };
  if (Object.keys(flags).length > 0) throw new TargetError(`${argument}: these options are for environments of Python libraries.`);
  const absolute = path.resolve(argument);
  const found = await stat(absolute).catch(() => null);
  if (found === null) throw new TargetError(`${argument}: no such file or folder.`);
  if (found.isFile()) {
    if (path.basename(absolute) === MANIFEST) return targetAt(path.dirname(absolute));
    if (!MODULE.test(absolute)) throw new TargetError(`${argument}: expected a folder or a module of an environment.`);
    const folder = path.dirname(absolute);
    return { kind: 'kit', folder, manifest: null, file: absolute };
  }
  const target = await targetIn(absolute);
  if (target !== null) return target;
  throw new TargetError(
    `${argument}: no ${MANIFEST}, no environment.ts, no ${ORS_FILE} and no ${OPENENV_SERVER}. Create an environment with "palestra env init NAME".`,
  );
}

/** Finds the environment in a folder (an absolute path); null if there is none. Throws `ManifestError` if its manifest is invalid. */
export async function targetIn(folder: string): Promise<FolderTarget | null> {
  const manifest = await readManifest(folder);
  if (manifest?.app != null && MODULE.test(manifest.app)) return { kind: 'kit', folder, manifest, file: path.join(folder, manifest.app) };
  if (manifest !== null) return { kind: 'openenv', folder, manifest, server: pythonServer(folder, manifest) };
  const file = KIT_FILES.map((name) => path.join(folder, name)).find((name) => existsSync(name));
  if (file !== undefined) return { kind: 'kit', folder, manifest: null, file };
  const server = path.join(folder, ORS_FILE);
  if (existsSync(server)) return { kind: 'ors', folder, manifest: null, file: server };
  if (!existsSync(path.join(folder, OPENENV_SERVER))) return null;
  const assumed = withoutManifest(path.basename(folder));
  return { kind: 'openenv', folder, manifest: assumed, server: pythonServer(folder, assumed) };
}

/** The `app` of the manifest, or `server/app.py` for older manifests without one. Null if the module does not exist. */
function pythonServer(folder: string, { app }: OpenEnvManifest): PythonServer | null {
  const named = app ?? 'server.app:app';
  const [module = '', attribute = 'app'] = named.split(':');
  const file = module.replaceAll('.', path.sep);
  const exists = (root: string) => existsSync(path.join(root, `${file}.py`)) || existsSync(path.join(root, file, '__init__.py'));
  if (exists(folder)) {
    // The modules of a package import each other through the parent folder.
    const isPackage = app === null && existsSync(path.join(folder, '__init__.py'));
    if (!isPackage) return { app: `${module}:${attribute}`, cwd: folder };
    return { app: `${path.basename(folder)}.${module}:${attribute}`, cwd: path.dirname(folder) };
  }
  const above = path.dirname(folder);
  return exists(above) ? { app: `${module}:${attribute}`, cwd: above } : null;
}
