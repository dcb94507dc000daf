import { totalmem } from 'node:os';
import type { Interpreter } from './interpreter.ts';

const LOOK_EVERY_MS = 50;
/** By so much one running program may make the process grow: all that an interpreter may have, twice. */
const GROWTH_BYTES = 640 * (1 << 20);
/** For this process as a whole: many that each stay within their limits may be too much, too. */
const CEILING_BYTES = totalmem() * 0.7;

interface Watched {
  before: number;
  isOver: boolean;
}

/**
 * Ends programs that find memory which no limit of theirs counts. Only the whole process can be measured, so with several programs running
 * it has to grow by the sum of what they may take, and all of them end.
 */
export class MemoryGuard {
  readonly #watched = new Map<Interpreter, Watched>();
  #timer: NodeJS.Timeout | null = null;

  /** Runs the program; `isOver` tells whether it was ended for its memory. */
  async watch<T>(interpreter: Interpreter, run: () => Promise<T>, isOver: () => void): Promise<T> {
    const watched: Watched = { before: process.memoryUsage.rss(), isOver: false };
    this.#watched.set(interpreter, watched);
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
    try {
      return await run();
    } finally {
      if (watched.isOver) isOver();
      this.#watched.delete(interpreter);
      if (this.#watched.size === 0) {
        clearInterval(this.#timer);
        this.#timer = null;
      }
    }
  }

  #look(): void {
    const allowed = GROWTH_BYTES * this.#watched.size;
    const rss = process.memoryUsage.rss();
    for (const [interpreter, watched] of this.#watched) {
      if (rss - watched.before <= allowed && rss <= CEILING_BYTES) continue;
      watched.isOver = true;
      void interpreter.close();
    }
  }
}
