import { mkdir, open, symlink } from 'node:fs/promises';
import path from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type ExtractEvents, type Header } from 'tar-stream';
import { HostingError } from '../provider/hosting-error.ts';
import { safeParts, staysInside } from './safe-path.ts';
import { type SourceLimits, sourceInvalid, tooManyBytes, tooManyEntries } from './source-limits.ts';
import { writeTo } from './streams.ts';

type Entry = ExtractEvents['entry'][1];

/** Most bytes of headers and padding of an entry. */
const OVERHEAD_BYTES = 8 * 1024;

/**
 * Unpacks a gzip-compressed tar archive into an empty folder. The archive is hostile: `source_invalid` for a path or link out of the folder, a
 * hard link, a device, two paths that a case-insensitive file system takes for one, too many files or bytes, and for anything that is no such
 * archive. Owners, times and set-user-id bits are ignored. After an error the caller deletes the folder.
 */
export async function unpackSource(archive: Readable, folder: string, limits: SourceLimits, signal: AbortSignal): Promise<void> {
  const unpacked = new Unpacked(folder, limits);
  try {
    await eachEntry(archive, limits, signal, (entry) => unpacked.add(entry.header, entry));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HostingError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    // Of the file system, not of the archive: the disk is full, for example.
    if (code !== undefined && /^E[A-Z]+$/.test(code)) throw error;
    throw sourceInvalid(`The source is not a complete .tar.gz archive: ${message}.`, error);
  }
  if (unpacked.entries === 0) throw sourceInvalid('The archive is empty.');
}

/** tar-stream refuses headers of long names that do not fit into memory. */
async function eachEntry(
  archive: Readable,
  limits: SourceLimits,
  signal: AbortSignal,
  use: (entry: Entry) => Promise<void>,
): Promise<void> {
  const maxBytes = limits.maxBytes + (limits.maxEntries + 1) * OVERHEAD_BYTES;
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > maxBytes ? sourceInvalid('The archive has more headers and padding than files.') : null, chunk);
    },
  });
  const tar = extract();
  const stop = new AbortController();
  const fed = pipeline(
    archive,
    createGunzip(),
    counted,
    async (source: AsyncIterable<Uint8Array>) => {
      for await (const chunk of source) await writeTo(tar, chunk);
      tar.end(null);
    },
    { signal: AbortSignal.any([signal, stop.signal]) },
  );
  fed.catch((error: Error) => tar.destroy(error));
  try {
    for await (const entry of tar) await use(entry);
    await fed;
  } finally {
    stop.abort();
    await fed.catch(() => {});
  }
}

class Unpacked {
  entries = 0;
  #bytes = 0;
  readonly #folder: string;
  readonly #limits: SourceLimits;
  /** The spelling of each path, by its lower case form. */
  readonly #spellings = new Map<string, string>();
  /** Paths of files and links: nothing can be below them. */
  readonly #leaves = new Set<string>();
  readonly #folders = new Set<string>(['']);

  constructor(folder: string, limits: SourceLimits) {
    this.#folder = folder;
    this.#limits = limits;
  }

  async add(header: Header, content: AsyncIterable<unknown>): Promise<void> {
    const size = header.type === 'file' || header.type === 'contiguous-file' ? header.size : 0;
    if (!Number.isSafeInteger(size) || size < 0) throw sourceInvalid('The archive has an entry of an impossible size.');
    this.#bytes += size;
    if (this.#bytes > this.#limits.maxBytes) throw tooManyBytes(this.#limits);
    const parts = safeParts(header.name);
    this.#claim();
    if (header.type === 'directory') {
      await this.#makeFolder(parts);
    } else if (parts.length === 0) {
      throw sourceInvalid('The archive has a file without a name.');
    } else if (header.type === 'file' || header.type === 'contiguous-file') {
      await this.#makeFile(parts, header.mode, content);
      return;
    } else if (header.type === 'symlink') {
      await this.#makeLink(parts, header.linkname);
    } else {
      throw sourceInvalid(`${JSON.stringify(header.name)} is a ${header.type}. Only files, folders and symbolic links are accepted.`);
    }
    for await (const _ of content);
  }

  async #makeFile(parts: string[], mode: number, content: AsyncIterable<unknown>): Promise<void> {
    const name = await this.#makeLeaf(parts);
    // `wx`: a link that another entry put there is never followed.
    const file = await open(path.join(this.#folder, name), 'wx', (mode & 0o111) === 0 ? 0o644 : 0o755);
    try {
      for await (const chunk of content) await file.writeFile(chunk as Uint8Array);
    } finally {
      await file.close();
    }
  }

  async #makeLink(parts: string[], target: string): Promise<void> {
    const name = await this.#makeLeaf(parts);
    if (!staysInside(name, target))
      throw sourceInvalid(`The link ${JSON.stringify(name)} leads out of the folder, to ${JSON.stringify(target.slice(0, 200))}.`);
    await symlink(target, path.join(this.#folder, name));
  }

  /** Makes the folders above, and returns the path. */
  async #makeLeaf(parts: string[]): Promise<string> {
    await this.#makeFolder(parts.slice(0, -1));
    const name = parts.join('/');
    if (this.#leaves.has(name) || this.#folders.has(name)) throw sourceInvalid(`The archive has ${JSON.stringify(name)} twice.`);
    this.#spell(name);
    this.#leaves.add(name);
    return name;
  }

  async #makeFolder(parts: string[]): Promise<void> {
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const name = parts.slice(0, depth).join('/');
      if (this.#folders.has(name)) continue;
      if (this.#leaves.has(name)) throw sourceInvalid(`The archive has a path below ${JSON.stringify(name)}, which is no folder.`);
      this.#claim();
      this.#spell(name);
      this.#folders.add(name);
      await mkdir(path.join(this.#folder, name), { mode: 0o755 });
    }
  }

  #claim(): void {
    this.entries += 1;
    if (this.entries > this.#limits.maxEntries) throw tooManyEntries(this.#limits);
  }

  #spell(name: string): void {
    const folded = name.normalize('NFC').toLowerCase();
    const other = this.#spellings.get(folded);
    if (other !== undefined && other !== name)
      throw sourceInvalid(`${JSON.stringify(other)} and ${JSON.stringify(name)} are one path on many file systems. Rename one of them.`);
    this.#spellings.set(folded, name);
  }
}
