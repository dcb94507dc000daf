import { fileURLToPath } from 'node:url';
import path from 'node:path';
import type { Environment } from '@palestra/environment-kit';

const KIT = '@palestra/environment-kit';

const isEnvironment = (value: unknown): value is Environment => {
  if (typeof value !== 'object' || value === null) return false;
  const { name, splits } = value as { name?: unknown; splits?: unknown };
  return typeof name === 'string' && Array.isArray(splits);
};

/**
 * The environments that a module exports: its default export (one or a list), else its named exports. jiti runs TypeScript on every supported
 * Node version and resolves the kit to this installation, so a folder needs no packages.
 */
export async function loadEnvironments(file: string): Promise<Environment[]> {
  const alias = { [KIT]: fileURLToPath(import.meta.resolve(KIT)) };
  // Loaded when it is needed: the API imports this package without loading modules of authors.
  const { createJiti } = await import('jiti');
  const jiti = createJiti(import.meta.url, { alias, fsCache: false, moduleCache: false });
  const exported = await jiti.import<Record<string, unknown>>(path.resolve(file));
  const found = [exported['default']].flat().filter(isEnvironment);
  const environments = found.length > 0 ? found : Object.values(exported).filter(isEnvironment);
  if (environments.length === 0) throw new Error(`${file} exports no environment. Expected: export default defineEnvironment({ ... })`);
  return environments;
}
