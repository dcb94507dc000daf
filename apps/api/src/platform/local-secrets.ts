import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import path from 'node:path';

/** A secret kept in a file that only its owner reads; made at the first start. `created` tells whether it was now. */
export async function readOrCreateSecret(folder: string, name: string, make: () => string): Promise<{ value: string; created: boolean }> {
  await mkdir(folder, { recursive: true });
  const file = path.join(folder, name);
  const known = await readFile(file, 'utf8').catch(() => null);
  if (known !== null && known.trim() !== '') return { value: known.trim(), created: false };
  return { value: await replaceSecret(folder, name, make()), created: true };
}

/** Writes a secret over the one that is there, durably. */
export async function replaceSecret(folder: string, name: string, value: string): Promise<string> {
  const handle = await open(path.join(folder, name), 'w', 0o600);
  try {
    await handle.writeFile(`${value}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return value;
}

export const randomSecret = (): string => randomBytes(32).toString('base64url');
