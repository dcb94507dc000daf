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
export type ProgramLimits = typeof PROGRAM_LIMITS;
/** An interpreter between two programs: a session that is left alone keeps no memory, and a process that goes on computing is hostile. */
const IDLE_LIMITS: ProgramLimits = { ...PROGRAM_LIMITS, wallMs: 900_000 };
const LOOK_EVERY_MS = 50;
/** Idle interpreters change little. */
const LOOKS_PER_IDLE_LOOK = 20;

/** The interpreter that is measured and ended. */
export interface Guarded {
  /** null: not measurable; only wall time counts. */
  usage(): Usage | null;
  close(): Promise<void>;
}
/** `ceiling`: all interpreters together took too much memory, and this one took most. */
export type Excess = 'time' | 'memory' | 'ceiling';
interface Watched {
  limits: ProgramLimits;
  startedAt: number;
  cpuMsBefore: number;
  rssBytes: number;
  excess: Excess | null;
}

/**
 * Ends programs that run too long or use memory that the interpreter does not count, and interpreters that are idle for 15 minutes. Measures
 * with the kernel, never with the process. One guard for all interpreters of a process: their memory together has a ceiling.
 */
export class ProgramGuard {
  readonly #interpreters = new Map<Guarded, Watched>();
  #timer: NodeJS.Timeout | null = null;
  #looks = 0;

  constructor(readonly ceilingBytes: number) {}

  /** Resident memory of all interpreters, when it was last measured. */
  get rssBytes(): number {
    return [...this.#interpreters.values()].reduce((total, { rssBytes }) => total + rssBytes, 0);
  }

  /** Counts an interpreter, which is idle, until `forget`. */
  add(interpreter: Guarded): void {
    this.#begin(interpreter, IDLE_LIMITS);
    this.#timer ??= setInterval(() => this.#check(), LOOK_EVERY_MS).unref();
  }

  forget(interpreter: Guarded): void {
    this.#interpreters.delete(interpreter);
    if (this.#interpreters.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Runs a program in an interpreter that was added. `onExcess` gets the reason before the rejection. */
  async watch<T>(interpreter: Guarded, limits: ProgramLimits, run: () => Promise<T>, onExcess: (excess: Excess) => void): Promise<T> {
    const watched = this.#begin(interpreter, limits);
    try {
      return await run();
    } finally {
      if (watched.excess !== null) onExcess(watched.excess);
      else if (this.#interpreters.has(interpreter)) this.#begin(interpreter, IDLE_LIMITS);
    }
  }

  #begin(interpreter: Guarded, limits: ProgramLimits): Watched {
    const { cpuMs, rssBytes } = interpreter.usage() ?? NOT_MEASURED;
    const watched = { limits, startedAt: performance.now(), cpuMsBefore: cpuMs, rssBytes, excess: null };
    this.#interpreters.set(interpreter, watched);
    return watched;
  }

  #check(): void {
    this.#looks += 1;
    const isIdleLook = this.#looks % LOOKS_PER_IDLE_LOOK === 0;
    for (const [interpreter, watched] of this.#interpreters)
      if (watched.excess === null && (watched.limits !== IDLE_LIMITS || isIdleLook)) this.#look(interpreter, watched);
    const alive = [...this.#interpreters].filter(([, { excess }]) => excess === null);
    const total = alive.reduce((sum, [, { rssBytes }]) => sum + rssBytes, 0);
    if (total <= this.ceilingBytes) return;
    const [largest, watched] = alive.reduce((one, other) => (other[1].rssBytes > one[1].rssBytes ? other : one));
    this.#end(largest, watched, 'ceiling');
  }

  #look(interpreter: Guarded, watched: Watched): void {
    const { limits, startedAt, cpuMsBefore } = watched;
    const { cpuMs, rssBytes } = interpreter.usage() ?? NOT_MEASURED;
    watched.rssBytes = rssBytes;
    if (rssBytes > limits.memoryBytes) this.#end(interpreter, watched, 'memory');
    else if (cpuMs - cpuMsBefore > limits.cpuMs || performance.now() - startedAt > limits.wallMs) this.#end(interpreter, watched, 'time');
  }

  #end(interpreter: Guarded, watched: Watched, excess: Excess): void {
    watched.excess = excess;
    void interpreter.close();
  }
}

const NOT_MEASURED: Usage = { cpuMs: 0, rssBytes: 0 };
