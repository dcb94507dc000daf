import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { BuiltTask } from './trial.ts';

/** In the folder of a build, beside `tasks/ID`. */
export const TASKS = 'tasks';
const MANIFEST = 'harbor.json';

/** What a build of a dataset is. Written and read by this service only. */
export interface HarborManifest {
  tasks: BuiltTask[];
}

export const manifestFile = (folder: string): string => path.join(folder, MANIFEST);

/** Null if the folder has no such build, or one whose file the machine cut when it lost power. */
export async function readManifest(folder: string): Promise<HarborManifest | null> {
  const text = await readFile(manifestFile(folder), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
  try {
    return text === null ? null : (JSON.parse(text) as HarborManifest);
  } catch {
    return null;
  }
}
