import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { MANIFEST, type OpenEnvManifest, readManifest, withoutManifest } from '../../openenv-manifest.ts';
import { UsageError } from '../../settings.ts';
import { type LibraryFlags, librarySpec, type LibrarySpec } from './library.ts';

/** An environment in a folder, or of a Python library. */
export type Target =
  | { kind: 'kit'; folder: string; manifest: OpenEnvManifest | null; file: string }
  | { kind: 'openenv'; folder: string; manifest: OpenEnvManifest; server: PythonServer | null }
  | { kind: 'ors'; folder: string; manifest: null; file: string }
  | { kind: 'library'; folder: string; manifest: null; library: LibrarySpec };

/** The module that uvicorn imports, and its working directory. */
export interface PythonServer {
  app: string;
  cwd: string;
}

const MODULE = /\.[cm]?[jt]s$/;
/** The server of an OpenEnv folder. Many have no openenv.yaml: what the server says decides whether it is one. */
const OPENENV_SERVER = path.join('server', 'app.py');
/** The server of a folder that `orwd init` creates: it runs `Server([...]).run()` of the package `openreward` or `ors`. */
const ORS_FILE = 'server.py';
const KIT_FILES = ['environment.ts', 'environment.js', 'environment.mjs'];

/** Finds the environment at a path. Throws `UsageError` if there is none, `ManifestError` if its manifest is invalid. */
export async function targetAt(argument: string, flags: LibraryFlags = {}): Promise<Target> {
  const library = librarySpec(argument, flags);
  if (library !== null) return { kind: 'library', folder: process.cwd(), manifest: null, library };
  if (Object.keys(flags).length > 0) throw new UsageError(`${argument}: these options are for environments of Python libraries.`);
  const absolute = path.resolve(argument);
  const found = await stat(absolute).catch(() => null);
  if (found === null) throw new UsageError(`${argument}: no such file or folder.`);
  if (found.isFile()) {
    if (path.basename(absolute) === MANIFEST) return targetAt(path.dirname(absolute));
    if (!MODULE.test(absolute)) throw new UsageError(`${argument}: expected a folder or a module of an environment.`);
    const folder = path.dirname(absolute);
    return { kind: 'kit', folder, manifest: null, file: absolute };
  }
  const manifest = await readManifest(absolute);
  if (manifest?.app != null && MODULE.test(manifest.app))
    return { kind: 'kit', folder: absolute, manifest, file: path.join(absolute, manifest.app) };
  if (manifest !== null) return { kind: 'openenv', folder: absolute, manifest, server: pythonServer(absolute, manifest) };
  const file = KIT_FILES.map((name) => path.join(absolute, name)).find((name) => existsSync(name));
  if (file !== undefined) return { kind: 'kit', folder: absolute, manifest: null, file };
  const server = path.join(absolute, ORS_FILE);
  if (existsSync(server)) return { kind: 'ors', folder: absolute, manifest: null, file: server };
  if (existsSync(path.join(absolute, OPENENV_SERVER))) {
    const assumed = withoutManifest(path.basename(absolute));
    return { kind: 'openenv', folder: absolute, manifest: assumed, server: pythonServer(absolute, assumed) };
  }
  throw new UsageError(
    `${argument}: no ${MANIFEST}, no environment.ts, no ${ORS_FILE} and no ${OPENENV_SERVER}. Create an environment with "palestra env init NAME".`,
  );
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
