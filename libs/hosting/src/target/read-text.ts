import { readFile, stat } from 'node:fs/promises';

/** Files that people write by hand; folders of others are hostile. */
const MAX_BYTES = 2 * 1024 * 1024;

/** The text of a file; null if it does not exist. Rejects for files over 2 MiB. */
export async function readText(file: string): Promise<string | null> {
  try {
    if ((await stat(file)).size > MAX_BYTES) throw new Error(`${file} is larger than ${MAX_BYTES / 1024 / 1024} MiB.`);
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}
