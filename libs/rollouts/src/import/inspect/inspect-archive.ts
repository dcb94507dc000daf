import { Decompress } from 'fzstd';
import yauzl, { type Entry, type ZipFile } from 'yauzl';
import { RecordError } from '../json-lines.ts';

/** What an archive may unpack to. Counted while unpacking: what the archive says of itself is not believed. */
export interface ArchiveLimits {
  entries: number;
  entryBytes: number;
  totalBytes: number;
  /** Unpacked over packed size of one entry, once it is past `ratioFromBytes`. */
  ratio: number;
  ratioFromBytes: number;
}

/**
 * One sample is one entry, and a rollout at most 200 MB (dashboard.md section 10). Real logs repeat the conversation with every
 * model call and reach a ratio of some hundred.
 */
export const ARCHIVE_LIMITS: ArchiveLimits = {
  entries: 200_000,
  entryBytes: 256 * 1024 * 1024,
  totalBytes: 16 * 1024 ** 3,
  ratio: 1_000,
  ratioFromBytes: 16 * 1024 * 1024,
};

/** The archive is more than a log may be, or no archive. */
export class ArchiveError extends RecordError {}

/** Compression methods of Inspect's logs: stored and deflate of older ones, Zstandard (93) of newer ones. */
const STORED = 0;
const DEFLATE = 8;
const ZSTANDARD = 93;

/** A ZIP file of JSON, read by name, one entry in memory at a time. Close it. */
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

  /** In the order in which they were written. */
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
    const unpack = new Decompress((piece) => add(piece.slice()));
    let begun = false;
    for await (const piece of await this.#zip.openReadStreamPromise(entry, { decodeFileData: false })) {
      if (!begun) this.#checkWindow(entry.fileName, piece as Buffer);
      begun = true;
      unpack.push(piece as Buffer);
    }
    unpack.push(new Uint8Array(0), true);
  }

  #check(name: string, size: number, packed: number): void {
    const { entryBytes, totalBytes, ratio, ratioFromBytes } = this.#limits;
    if (size > entryBytes) throw new ArchiveError(`${name} unpacks to more than ${entryBytes} bytes.`);
    if (this.#unpacked > totalBytes) throw new ArchiveError(`The archive unpacks to more than ${totalBytes} bytes.`);
    if (size > ratioFromBytes && size > packed * ratio) throw new ArchiveError(`${name} unpacks to more than ${ratio} times its size.`);
  }

  /** A frame names the memory that it wants before its first byte is unpacked (RFC 8878, 3.1.1.1). */
  #checkWindow(name: string, head: Buffer): void {
    if (head.length < 6 || head.readUInt32LE(0) !== 0xfd2fb528) return;
    const isSingleSegment = (head[4]! & 0x20) !== 0;
    const base = 2 ** (10 + (head[5]! >> 3));
    const window = isSingleSegment ? contentSize(head) : base + (base / 8) * (head[5]! & 7);
    if (window > this.#limits.entryBytes) throw new ArchiveError(`${name} wants ${window} bytes of memory.`);
  }
}

/** Frame_Content_Size, behind the dictionary id. */
function contentSize(head: Buffer): number {
  const at = 5 + [0, 1, 2, 4][head[4]! & 3]!;
  const width = [1, 2, 4, 8][head[4]! >> 6]!;
  if (head.length < at + width) return 0;
  if (width === 8) return Number(head.readBigUInt64LE(at));
  return head.readUIntLE(at, width) + (width === 2 ? 256 : 0);
}
