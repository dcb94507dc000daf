import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import dockerignore from '@balena/dockerignore';
import { pack, type Pack } from 'tar-stream';
import { mebibytes, SOURCE_LIMITS, type SourceLimits, sourceInvalid } from './source-limits.ts';
import { writeTo } from './streams.ts';
import { bytesOf, listSource, type SourceEntry } from './source-tree.ts';

/** At any depth: data of Git, secrets, and what a build installs again. */
const EXCLUDED = new Set(['.git', '.venv', 'node_modules', '__pycache__', '.palestra']);
const isAlwaysExcluded = (name: string): boolean => {
  const last = path.posix.basename(name);
  return EXCLUDED.has(last) || last.startsWith('.env');
};
/** Docker sends these two although .dockerignore lists them. */
const isAlwaysIncluded = (name: string): boolean => name === '.dockerignore' || /^(?:.*\/)?Dockerfile$/.test(name);

const NAMED_FILES = 5;

export interface PackedFolder {
  /** A tar archive, compressed by gzip. Equal folders give equal bytes. */
  archive: Readable;
  files: number;
  /** Before compression. */
  bytes: number;
}

/**
 * Packs a folder without `.git`, `.env*`, `.venv`, `node_modules`, `__pycache__` and what `.dockerignore` excludes. Throws `source_invalid`, with
 * the largest files, for a folder over the limits, and for links out of it. A file that changes while it is packed ends the archive with an
 * error.
 */
export async function packFolder(folder: string, limits: SourceLimits = SOURCE_LIMITS, signal?: AbortSignal): Promise<PackedFolder> {
  const entries = await listSource(folder, { isExcluded: await excludedBy(folder), limits, signal });
  const bytes = bytesOf(entries);
  if (bytes > limits.maxBytes) throw tooLarge(entries, bytes, limits);
  if (entries.length === 0) throw sourceInvalid('The folder has no files, or .dockerignore excludes all of them.');
  const archive = createGzip();
  const tar = pack();
  pipeline(Readable.from(tar), archive, { signal }).catch(() => tar.destroy());
  addAll(tar, folder, entries).catch((error: Error) => tar.destroy(error));
  return { archive, files: entries.length, bytes };
}

async function excludedBy(folder: string): Promise<(name: string, isFolder: boolean) => boolean> {
  const rules = await readFile(path.join(folder, '.dockerignore'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const ignored = dockerignore.default({ ignorecase: false }).add(rules);
  // A folder can be skipped only if no later rule brings a file in it back.
  const hasExceptions = /^\s*!/m.test(rules);
  return (name, isFolder) => {
    if (isAlwaysExcluded(name)) return true;
    if (isAlwaysIncluded(name) || (isFolder && hasExceptions)) return false;
    return ignored.ignores(name);
  };
}

function tooLarge(entries: readonly SourceEntry[], bytes: number, { maxBytes }: SourceLimits): Error {
  const largest = entries
    .flatMap((entry) => (entry.kind === 'file' ? [entry] : []))
    .toSorted((one, other) => other.size - one.size)
    .slice(0, NAMED_FILES)
    .map(({ name, size }) => `${name} (${mebibytes(size)})`);
  return sourceInvalid(
    `The folder has ${mebibytes(bytes)} of files, more than ${mebibytes(maxBytes)}. The largest are ${largest.join(', ')}. ` +
      'List what is not needed in .dockerignore.',
  );
}

/** Times and owners are constant, so that the archive depends on the contents only. */
async function addAll(tar: Pack, folder: string, entries: readonly SourceEntry[]): Promise<void> {
  for (const entry of entries) {
    const header = { name: entry.name, mtime: new Date(0), uid: 0, gid: 0, uname: '', gname: '' };
    if (entry.kind === 'link') {
      tar.entry({ ...header, type: 'symlink', linkname: entry.target, mode: 0o777 });
      continue;
    }
    const file = tar.entry({ ...header, type: 'file', size: entry.size, mode: entry.isExecutable ? 0o755 : 0o644 });
    // A reader that stops ends the archive, and with it this file.
    file.on('error', () => {});
    for await (const chunk of createReadStream(path.join(folder, entry.name))) await writeTo(file, chunk);
    file.end(null);
    if (!file.destroyed) await once(file, 'close');
    if (tar.destroyed) return;
  }
  tar.finalize();
}
