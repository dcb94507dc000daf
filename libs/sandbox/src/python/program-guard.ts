import { totalmem } from 'node:os';
import type { Usage } from '../process/sandboxed-process.ts';

/** Default limits of one program. */
export const PROGRAM_LIMITS = {
  /** Processor time. */
  cpuMs: 5_000,
  /** Wall time, for programs that sleep and for busy machines. OpenEnv's first clients give up after 15 s. */
  wallMs: 12_000,
  /** Resident memory of the process: twice the interpreter's limits. */
  memoryBytes: 640 * (1 << 20),
};
/** Memory of all running programs of this process. Two environments run programs. */
const CEILING_BYTES = totalmem() / 3;
const LOOK_EVERY_MS = 50;

/** The interpreter that is measured and ended. */
export interface Guarded {
  /** null: not measurable; only wall time counts. */
  usage(): Usage | null;
  close(): Promise<void>;
}
export type Excess = 'time' | 'memory';
interface Watched {
  startedAt: number;
  cpuMsBefore: number;
  excess: Excess | null;
}

/** Ends programs that run too long or use memory that the interpreter does not count. Measures with the kernel, never with the process. */
export class ProgramGuard {
  readonly #watched = new Map<Guarded, Watched>();
  #timer: NodeJS.Timeout | null = null;

  constructor(
    readonly limits: typeof PROGRAM_LIMITS = PROGRAM_LIMITS,
    readonly ceilingBytes = CEILING_BYTES,
  ) {}

  /** Runs the program. `onExcess` gets the reason before the rejection. */
  async watch<T>(interpreter: Guarded, run: () => Promise<T>, onExcess: (excess: Excess) => void): Promise<T> {
    const watched: Watched = { startedAt: performance.now(), cpuMsBefore: interpreter.usage()?.cpuMs ?? 0, excess: null };
    this.#watched.set(interpreter, watched);
    this.#timer ??= setInterval(() => this.#check(), LOOK_EVERY_MS);
    try {
      return await run();
    } finally {
      if (watched.excess !== null) onExcess(watched.excess);
      this.#watched.delete(interpreter);
      if (this.#watched.size === 0) {
        clearInterval(this.#timer);
        this.#timer = null;
      }
    }
  }

  #check(): void {
    let largest: { interpreter: Guarded; rssBytes: number } | null = null;
    let allBytes = 0;
    for (const [interpreter, watched] of this.#watched) {
      if (watched.excess !== null) continue;
      const { cpuMs, rssBytes } = interpreter.usage() ?? { cpuMs: 0, rssBytes: 0 };
      const isLong = cpuMs - watched.cpuMsBefore > this.limits.cpuMs || performance.now() - watched.startedAt > this.limits.wallMs;
      if (rssBytes > this.limits.memoryBytes) this.#end(interpreter, 'memory');
      else if (isLong) this.#end(interpreter, 'time');
      else {
        allBytes += rssBytes;
        if (largest === null || rssBytes > largest.rssBytes) largest = { interpreter, rssBytes };
      }
    }
    if (largest !== null && allBytes > this.ceilingBytes) this.#end(largest.interpreter, 'memory');
  }

  #end(interpreter: Guarded, excess: Excess): void {
    this.#watched.get(interpreter)!.excess = excess;
    void interpreter.close();
  }
}
