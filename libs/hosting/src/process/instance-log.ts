import { type FileHandle, open, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogLine } from '../provider/provider.port.ts';
import { FILES, type StoredLine } from './instance-files.ts';

const POLL_MS = 100;
const CHUNK_BYTES = 64 * 1024;

/**
 * The lines of an instance that are later than `since`, then those that it writes, until the signal aborts or `isOver` says that no more come.
 * A reader that is slower than a flood misses lines.
 */
export async function* readInstanceLog(
  folder: string,
  since: Date | null,
  isOver: () => Promise<boolean>,
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  const after = since?.getTime() ?? -Infinity;
  const current = await firstFiles(folder);
  try {
    while (current.length > 0 && !signal.aborted) {
      const file = current[0]!;
      // In this order: what was written before the end, or before the next file was begun, is read below.
      const wasOver = await isOver();
      const next = current.length > 1 ? null : await openNext(folder, file);
      for await (const [at, stream, text] of file.lines()) {
        if (signal.aborted) return;
        if (at > after) yield { at: new Date(at), stream: stream === 'o' ? 'stdout' : 'stderr', text };
      }
      if (next !== null) current.push(next);
      if (current.length > 1) await current.shift()!.close();
      else if (wasOver) return;
      else await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    await Promise.all(current.map((file) => file.close()));
  }
}

/** The older file and the one that is written, oldest first. Empty if there is none. */
async function firstFiles(folder: string): Promise<LogFile[]> {
  for (;;) {
    const older = await LogFile.open(folder, FILES.olderLog);
    const newest = await LogFile.open(folder, FILES.log);
    const isUnchanged = (await inodeOf(folder, FILES.olderLog)) === (older?.inode ?? null);
    if (isUnchanged) return [older, newest].filter((file) => file !== null);
    await Promise.all([older?.close(), newest?.close()]);
  }
}

/** The file that took the place of `file`; null if it is still the newest. */
async function openNext(folder: string, file: LogFile): Promise<LogFile | null> {
  const inode = await inodeOf(folder, FILES.log);
  return inode === null || inode === file.inode ? null : LogFile.open(folder, FILES.log);
}

/** Null for the last line of a file, which is empty, and for one that was cut when the disk was full. */
function storedLine(line: string): StoredLine | null {
  try {
    return JSON.parse(line) as StoredLine;
  } catch {
    return null;
  }
}

const inodeOf = async (folder: string, name: string): Promise<number | null> =>
  stat(path.join(folder, name)).then(
    ({ ino }) => ino,
    () => null,
  );

class LogFile {
  readonly inode: number;
  readonly #handle: FileHandle;
  #rest = Buffer.alloc(0);

  private constructor(handle: FileHandle, inode: number) {
    this.#handle = handle;
    this.inode = inode;
  }

  static async open(folder: string, name: string): Promise<LogFile | null> {
    const handle = await open(path.join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    return handle === null ? null : new LogFile(handle, (await handle.stat()).ino);
  }

  /** The complete lines that were not read before. */
  async *lines(): AsyncGenerator<StoredLine> {
    for (;;) {
      const { bytesRead, buffer } = await this.#handle.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES) });
      if (bytesRead === 0) return;
      const bytes = Buffer.concat([this.#rest, buffer.subarray(0, bytesRead)]);
      const end = bytes.lastIndexOf(0x0a) + 1;
      this.#rest = bytes.subarray(end);
      for (const line of bytes.subarray(0, end).toString('utf8').split('\n')) {
        const stored = storedLine(line);
        if (stored !== null) yield stored;
      }
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
