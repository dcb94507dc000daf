import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { staysInside } from './safe-path.ts';
import { type SourceLimits, SOURCE_LIMITS, sourceInvalid, tooManyBytes, tooManyEntries } from './source-limits.ts';

/** A file or link of a folder. `name`: its path in the folder, with "/". */
export type SourceEntry =
  | { kind: 'file'; name: string; size: number; isExecutable: boolean }
  | { kind: 'link'; name: string; target: string };

export interface ListOptions {
  /** Folders and files that are left out. */
  isExcluded?: (name: string, isFolder: boolean) => boolean;
  limits?: SourceLimits;
  signal?: AbortSignal;
}

const byName = (one: { name: string }, other: { name: string }): number => Buffer.compare(Buffer.from(one.name), Buffer.from(other.name));

/**
 * The files and links of a folder, sorted by the bytes of their paths. Empty folders are left out. Throws `source_invalid` for links out of the
 * folder, for anything that is neither file, folder nor link, and for too many files. `limits.maxBytes` is the caller's business.
 */
export async function listSource(folder: string, { isExcluded, limits = SOURCE_LIMITS, signal }: ListOptions = {}): Promise<SourceEntry[]> {
  const entries: SourceEntry[] = [];
  const folders = [''];
  let seen = 0;
  for (let inside = folders.pop(); inside !== undefined; inside = folders.pop()) {
    signal?.throwIfAborted();
    for (const found of await readdir(path.join(folder, inside), { withFileTypes: true })) {
      const name = inside === '' ? found.name : `${inside}/${found.name}`;
      if (isExcluded?.(name, found.isDirectory())) continue;
      seen += 1;
      if (seen > limits.maxEntries) throw tooManyEntries(limits);
      if (found.isDirectory()) folders.push(name);
      else entries.push(await entryAt(folder, name));
    }
  }
  return entries.toSorted(byName);
}

async function entryAt(folder: string, name: string): Promise<SourceEntry> {
  const file = path.join(folder, name);
  const stats = await lstat(file);
  if (stats.isFile()) return { kind: 'file', name, size: stats.size, isExecutable: (stats.mode & 0o111) !== 0 };
  if (!stats.isSymbolicLink()) throw sourceInvalid(`${JSON.stringify(name)} is neither a file, a folder nor a link. Remove it.`);
  const target = await readlink(file);
  if (staysInside(name, target)) return { kind: 'link', name, target };
  throw sourceInvalid(`The link ${JSON.stringify(name)} leads out of the folder, to ${JSON.stringify(target)}. Put a copy in its place.`);
}

/** Bytes of all files. */
export const bytesOf = (entries: readonly SourceEntry[]): number =>
  entries.reduce((sum, entry) => sum + (entry.kind === 'file' ? entry.size : 0), 0);

/** Throws `source_invalid` unless a folder has only what `listSource` accepts, within the limits. */
export async function assertSource(folder: string, limits: SourceLimits, signal: AbortSignal): Promise<SourceEntry[]> {
  const entries = await listSource(folder, { limits, signal });
  if (bytesOf(entries) > limits.maxBytes) throw tooManyBytes(limits);
  return entries;
}

/** `sha256:...` over the sorted paths, the executable bits and the contents of a folder. Equal folders have equal digests on every machine. */
export async function digestOf(folder: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for (const entry of await listSource(folder, { signal })) {
    if (entry.kind === 'link') {
      hash.update(`link\0${entry.name}\0${entry.target}\0`);
      continue;
    }
    hash.update(`${entry.isExecutable ? 'program' : 'file'}\0${entry.name}\0${entry.size}\0`);
    for await (const chunk of createReadStream(path.join(folder, entry.name), { signal })) hash.update(chunk as Buffer);
  }
  return `sha256:${hash.digest('hex')}`;
}
