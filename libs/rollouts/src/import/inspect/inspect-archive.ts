import { buffer } from 'node:stream/consumers';
import { loadZstd } from '@palestra/kit/zstd';
import yauzl, { type Entry, type ZipFile } from 'yauzl';
import { RecordError } from '../json-lines.ts';

/** Limits of unpacking. They are counted while unpacking, because the sizes in the archive cannot be trusted. */
export interface ArchiveLimits {
  entries: number;
  entryBytes: number;
  totalBytes: number;
  /** Unpacked size divided by packed size of one entry, checked above `ratioFromBytes`. */
  ratio: number;
  ratioFromBytes: number;
}

/**
 * One sample is one entry, and a rollout is at most 200 MB (docs/reference/metrics.md#size-limits). Real logs repeat the conversation
 * with every model call and reach a ratio of some hundred.
 */
export const ARCHIVE_LIMITS: ArchiveLimits = {
  entries: 200_000,
  entryBytes: 256 * 1024 * 1024,
  totalBytes: 16 * 1024 ** 3,
  ratio: 1_000,
  ratioFromBytes: 16 * 1024 * 1024,
};

/** The file is not an archive, or exceeds the limits. */
export class ArchiveError extends RecordError {}

/** Compression methods of Inspect's logs: stored and deflate of older ones, Zstandard (93) of newer ones. */
const STORED = 0;
const DEFLATE = 8;
const ZSTANDARD = 93;

/** A ZIP file of JSON entries, read by name, one entry in memory at a time. The caller closes it. */
export class Archive {
  readonly #zip: ZipFile;
  readonly #limits: ArchiveLimits;
  readonly #entries: Map<string, Entry>;
  #unpacked = 0;

  private constructor(zip: ZipFile, limits: ArchiveLimits, entries: Map<string, Entry>) {
    this.#zip = zip;
    this.#limits = limits;
    this.#entries = entries;
  }

  /** Throws `ArchiveError`. */
  static async open(path: string, limits: ArchiveLimits = ARCHIVE_LIMITS): Promise<Archive> {
    const zip = await yauzl.openPromise(path, { autoClose: false }).catch((error: unknown) => {
      throw error instanceof Error && 'code' in error ? error : new ArchiveError(`Not a ZIP archive: ${(error as Error).message}`);
    });
    const entries = new Map<string, Entry>();
    try {
      if (zip.entryCount > limits.entries) throw new ArchiveError(`The archive has more than ${limits.entries} files.`);
      for await (const entry of zip.eachEntry()) entries.set(entry.fileName, entry);
    } catch (error) {
      zip.close();
      throw error instanceof ArchiveError ? error : new ArchiveError(`The archive is damaged: ${(error as Error).message}`);
    }
    return new Archive(zip, limits, entries);
  }

  /** Names of the entries in the order of the archive. */
  get names(): string[] {
    return [...this.#entries.keys()];
  }

  /** Throws `ArchiveError` when the entry is damaged or unpacks beyond the limits. */
  async text(name: string): Promise<string> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new ArchiveError(`${name} is missing.`);
    if (entry.isEncrypted()) throw new ArchiveError(`${name} is encrypted.`);
    const pieces: Uint8Array[] = [];
    let size = 0;
    const add = (piece: Uint8Array) => {
      size += piece.length;
      this.#unpacked += piece.length;
      this.#check(name, size, entry.compressedSize);
      pieces.push(piece);
    };
    try {
      await this.#unpack(entry, add);
    } catch (error) {
      throw error instanceof ArchiveError ? error : new ArchiveError(`${name} is damaged: ${(error as Error).message}`);
    }
    return new TextDecoder().decode(Buffer.concat(pieces, size));
  }

  close(): void {
    this.#zip.close();
  }

  async #unpack(entry: Entry, add: (piece: Uint8Array) => void): Promise<void> {
    if (entry.compressionMethod === STORED || entry.compressionMethod === DEFLATE) {
      for await (const piece of await this.#zip.openReadStreamPromise(entry)) add(piece as Buffer);
      return;
    }
    if (entry.compressionMethod !== ZSTANDARD)
      throw new ArchiveError(`${entry.fileName} is compressed by method ${entry.compressionMethod}.`);
    // zstd unpacks a frame at once, up to the stated size of the entry, so the stated size must be within the limits.
    this.#check(entry.fileName, Math.max(entry.uncompressedSize, entry.compressedSize), entry.compressedSize);
    const packed = await this.#zip.openReadStreamPromise(entry, { decodeFileData: false }).then((stream) => buffer(stream));
    add((await loadZstd()).decompress(packed, entry.uncompressedSize));
  }

  #check(name: string, size: number, packed: number): void {
    const { entryBytes, totalBytes, ratio, ratioFromBytes } = this.#limits;
    if (size > entryBytes) throw new ArchiveError(`${name} unpacks to more than ${entryBytes} bytes.`);
    if (this.#unpacked > totalBytes) throw new ArchiveError(`The archive unpacks to more than ${totalBytes} bytes.`);
    if (size > ratioFromBytes && size > packed * ratio) throw new ArchiveError(`${name} unpacks to more than ${ratio} times its size.`);
  }
}
