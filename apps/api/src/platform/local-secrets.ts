import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';

/** A secret kept in a file that only its owner reads; made at the first start. `created` tells whether it was now. */
export async function readOrCreateSecret(folder: string, name: string, make: () => string): Promise<{ value: string; created: boolean }> {
  await mkdir(folder, { recursive: true });
  const file = path.join(folder, name);
  const known = await readFile(file, 'utf8').catch(() => null);
  if (known !== null && known.trim() !== '') return { value: known.trim(), created: false };
  return { value: await replaceSecret(folder, name, make()), created: true };
}

/**
 * Writes a secret over the one that is there, durably. A new file takes the place of the old one, so that neither the mode of that one nor a
 * link in its place decides who reads it.
 */
export async function replaceSecret(folder: string, name: string, value: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const written = path.join(folder, `.${name}.${randomUUID()}`);
  try {
    const handle = await open(written, 'wx', 0o600);
    try {
      await handle.writeFile(`${value}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(written, path.join(folder, name));
  } catch (error) {
    await rm(written, { force: true });
    throw error;
  }
  return value;
}

export const randomSecret = (): string => randomBytes(32).toString('base64url');
