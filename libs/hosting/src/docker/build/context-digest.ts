import { createHash, type Hash } from 'node:crypto';
import { readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import type { ContextFolder } from './build-context.ts';

/** Hexadecimal. Over the places, names and contents of files of this service that a build gets; their times do not count. */
export async function contextDigest(folders: readonly ContextFolder[], signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for (const folder of folders) {
    hash.update(`folder\0${folder.at}\0`);
    await add(hash, folder, '', signal);
  }
  return hash.digest('hex');
}

async function add(hash: Hash, folder: ContextFolder, inside: string, signal: AbortSignal): Promise<void> {
  const entries = await readdir(path.join(folder.folder, inside), { withFileTypes: true });
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    signal.throwIfAborted();
    const name = path.posix.join(inside, entry.name);
    if (folder.isExcluded(name, entry.isDirectory())) continue;
    const file = path.join(folder.folder, name);
    if (entry.isDirectory()) await add(hash, folder, name, signal);
    else if (entry.isSymbolicLink()) hash.update(`link\0${name}\0${await readlink(file)}\0`);
    else if (entry.isFile()) {
      const content = await readFile(file);
      hash.update(`file\0${name}\0${content.length}\0`).update(content);
    }
  }
}
