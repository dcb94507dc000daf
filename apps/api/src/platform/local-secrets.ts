import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';

/** Reads a secret from a file that only its owner can read, or creates it. `created`: whether this call created it. */
export async function readOrCreateSecret(folder: string, name: string, make: () => string): Promise<{ value: string; created: boolean }> {
  await mkdir(folder, { recursive: true });
  const file = path.join(folder, name);
  const known = await readFile(file, 'utf8').catch(() => null);
  if (known !== null && known.trim() !== '') return { value: known.trim(), created: false };
  return { value: await replaceSecret(folder, name, make()), created: true };
}

/**
 * Replaces a secret durably. Renames a new file over the old one, so that neither the old file's mode nor a symbolic link decides who can
 * read it.
 */
export async function replaceSecret(folder: string, name: string, value: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const draft = path.join(folder, `.${name}.${randomUUID()}`);
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(`${value}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path.join(folder, name));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return value;
}

export const randomSecret = (): string => randomBytes(32).toString('base64url');
