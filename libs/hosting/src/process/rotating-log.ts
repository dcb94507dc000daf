import { closeSync, openSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { FILES, type StoredLine } from './instance-files.ts';

/** An instance keeps at most twice as much. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Milliseconds by which the time of a line may be later than it was. */
const MOST_AHEAD_MS = 1_000;

/** The log of one instance on disk: the newest lines, in two files. Lines are lost while the disk is full. */
export class RotatingLog {
  readonly #folder: string;
  #file: number;
  #size = 0;
  #waiting: string[] = [];
  #lastAt = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = openSync(path.join(folder, FILES.log), 'a', 0o600);
  }

  /**
   * Lines of one piece of output are written together. Lines of the same millisecond get different times, because a reader continues after the
   * time of the last line that it read; in a flood they do not.
   */
  add(...[at, stream, text]: StoredLine): void {
    this.#lastAt = Math.max(at, Math.min(this.#lastAt + 1, at + MOST_AHEAD_MS));
    const line: StoredLine = [this.#lastAt, stream, text];
    if (this.#waiting.push(`${JSON.stringify(line)}\n`) === 1) queueMicrotask(() => this.flush());
  }

  flush(): void {
    const bytes = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    if (bytes.length === 0) return;
    try {
      if (this.#size + bytes.length > MAX_BYTES) this.#rotate();
      writeSync(this.#file, bytes);
      this.#size += bytes.length;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }

  #rotate(): void {
    const file = path.join(this.#folder, FILES.log);
    renameSync(file, path.join(this.#folder, FILES.olderLog));
    closeSync(this.#file);
    this.#file = openSync(file, 'a', 0o600);
    this.#size = 0;
  }
}
