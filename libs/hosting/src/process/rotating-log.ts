import { closeSync, openSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { FILES, type StoredLine } from './instance-files.ts';

/** An instance keeps at most twice as much. */
const MAX_BYTES = 8 * 1024 * 1024;

/** The log of one instance on disk: the newest lines, in two files. Lines are lost while the disk is full. */
export class RotatingLog {
  readonly #folder: string;
  #file: number;
  #size = 0;
  #waiting: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = openSync(path.join(folder, FILES.log), 'a', 0o600);
  }

  /** Lines of one piece of output are written together. */
  add(...line: StoredLine): void {
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
