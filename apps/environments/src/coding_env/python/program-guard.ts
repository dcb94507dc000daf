import { totalmem } from 'node:os';

/** Of one program, unless told otherwise. */
export const PROGRAM_LIMITS = {
  /** Of the processor. Only the whole process can be measured, so programs that run side by side share what it used. */
  cpuMs: 5_000,
  /** By the clock: for one that sleeps, and for a machine that has no time. Clients of OpenEnv's first generation give up after 15 s. */
  wallMs: 12_000,
  /** By so much each running program may make the process grow: all that an interpreter may have, twice. */
  growthBytes: 640 * (1 << 20),
};
/** For this process as a whole: many that each stay within their limits may be too much, too. */
const CEILING_BYTES = totalmem() * 0.7;
const LOOK_EVERY_MS = 50;

/** What is ended: an interpreter. */
export interface Endable {
  close(): Promise<void>;
}
export type Excess = 'time' | 'memory';
/** Of this process: processor time since its start, a clock that never goes back, resident memory. */
export interface ProcessUsage {
  cpuMs: number;
  clockMs: number;
  rssBytes: number;
}
interface Watched {
  startedAt: number;
  cpuMs: number;
  rssBefore: number;
  excess: Excess | null;
}

function measureProcess(): ProcessUsage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1000, clockMs: performance.now(), rssBytes: process.memoryUsage.rss() };
}

/** Ends programs that take too long, and those that find memory which no limit of the interpreter counts. */
export class ProgramGuard {
  readonly #watched = new Map<Endable, Watched>();
  #timer: NodeJS.Timeout | null = null;
  #lastCpuMs = 0;

  constructor(
    readonly limits: typeof PROGRAM_LIMITS = PROGRAM_LIMITS,
    readonly measure: () => ProcessUsage = measureProcess,
  ) {}

  /** Runs the program; `onExcess` hears why it was ended, before the rejection that comes of it. */
  async watch<T>(interpreter: Endable, run: () => Promise<T>, onExcess: (excess: Excess) => void): Promise<T> {
    const usage = this.measure();
    this.#share(usage);
    const watched: Watched = { startedAt: usage.clockMs, cpuMs: 0, rssBefore: usage.rssBytes, excess: null };
    this.#watched.set(interpreter, watched);
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
    try {
      return await run();
    } finally {
      if (watched.excess !== null) onExcess(watched.excess);
      this.#share(this.measure());
      this.#watched.delete(interpreter);
      if (this.#watched.size === 0) {
        clearInterval(this.#timer);
        this.#timer = null;
      }
    }
  }

  /** What the processor did since the last time goes to those that have been running. */
  #share({ cpuMs }: ProcessUsage): void {
    for (const watched of this.#watched.values()) watched.cpuMs += (cpuMs - this.#lastCpuMs) / this.#watched.size;
    this.#lastCpuMs = cpuMs;
  }

  #look(): void {
    const usage = this.measure();
    this.#share(usage);
    const { cpuMs, wallMs, growthBytes } = this.limits;
    const allowed = growthBytes * this.#watched.size;
    for (const [interpreter, watched] of this.#watched) {
      const isLarge = usage.rssBytes - watched.rssBefore > allowed || usage.rssBytes > CEILING_BYTES;
      const isLong = watched.cpuMs > cpuMs || usage.clockMs - watched.startedAt > wallMs;
      if (watched.excess !== null || !(isLarge || isLong)) continue;
      watched.excess = isLarge ? 'memory' : 'time';
      void interpreter.close();
    }
  }
}
