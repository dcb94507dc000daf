import { chmod, opendir, rm } from 'node:fs/promises';
import path from 'node:path';

const OPTIONS = { recursive: true, force: true, maxRetries: 3 } as const;

/** Removes a folder with all that is in it, also folders that only root may change, as secrets and the caches of some languages are. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await rm(folder, OPTIONS);
  } catch (error) {
    if (!/^E(?:ACCES|PERM)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await makeWritable(folder);
    await rm(folder, OPTIONS);
  }
}

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for await (const entry of await opendir(folder)) if (entry.isDirectory()) await makeWritable(path.join(folder, entry.name));
}
