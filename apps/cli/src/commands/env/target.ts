import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { MANIFEST, type OpenEnvManifest, readManifest } from '../../openenv-manifest.ts';
import { UsageError } from '../../settings.ts';

/** An environment in a folder. */
export type Target =
  | { kind: 'kit'; folder: string; manifest: OpenEnvManifest | null; file: string }
  | { kind: 'openenv'; folder: string; manifest: OpenEnvManifest; server: PythonServer | null };

/** What uvicorn is to import, and from which folder. */
export interface PythonServer {
  app: string;
  cwd: string;
}

const MODULE = /\.[cm]?[jt]s$/;
const KIT_FILES = ['environment.ts', 'environment.js', 'environment.mjs'];

/** Throws `UsageError` where there is no environment, `ManifestError` where its manifest is broken. */
export async function targetAt(given: string): Promise<Target> {
  const place = path.resolve(given);
  const found = await stat(place).catch(() => null);
  if (found === null) throw new UsageError(`${given}: there is no such file or folder`);
  if (found.isFile()) {
    if (path.basename(place) === MANIFEST) return targetAt(path.dirname(place));
    if (!MODULE.test(place)) throw new UsageError(`${given}: neither a folder nor a module of an environment`);
    const folder = path.dirname(place);
    return { kind: 'kit', folder, manifest: null, file: place };
  }
  const manifest = await readManifest(place);
  if (manifest?.app != null && MODULE.test(manifest.app))
    return { kind: 'kit', folder: place, manifest, file: path.join(place, manifest.app) };
  if (manifest !== null) return { kind: 'openenv', folder: place, manifest, server: pythonServer(place, manifest) };
  const file = KIT_FILES.map((name) => path.join(place, name)).find((name) => existsSync(name));
  if (file !== undefined) return { kind: 'kit', folder: place, manifest: null, file };
  throw new UsageError(`${given}: no ${MANIFEST} and no environment.ts there; "palestra env init NAME" makes an environment`);
}

/** The manifest's `app`; for the older flavour, which has none, `server/app.py`. null: there is no such module. */
function pythonServer(folder: string, { app }: OpenEnvManifest): PythonServer | null {
  const named = app ?? 'server.app:app';
  const [module = '', attribute = 'app'] = named.split(':');
  const file = module.replaceAll('.', path.sep);
  const exists = (root: string) => existsSync(path.join(root, `${file}.py`)) || existsSync(path.join(root, file, '__init__.py'));
  if (exists(folder)) {
    // Written as a package, its modules import each other by way of the folder above.
    const isPackage = app === null && existsSync(path.join(folder, '__init__.py'));
    if (!isPackage) return { app: `${module}:${attribute}`, cwd: folder };
    return { app: `${path.basename(folder)}.${module}:${attribute}`, cwd: path.dirname(folder) };
  }
  const above = path.dirname(folder);
  return exists(above) ? { app: `${module}:${attribute}`, cwd: above } : null;
}
