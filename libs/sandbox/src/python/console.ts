import { availableParallelism, totalmem } from 'node:os';
import { InterpreterEnded, type ProgramResult } from './interpreter.ts';
import { Interpreters, type Lease } from './interpreters.ts';
import { type Excess, type ProgramGuard } from './program-guard.ts';
import { Slots } from './slots.ts';

/** Timeout of waits for an interpreter and for a run. */
const PATIENCE_MS = 60_000;
/** Below the 15 s of OpenEnv's first clients. */
const WARM_UP_MS = 10_000;
/** Memory of an idle interpreter. Two environments run programs, each in a process of its own: a third of the machine's memory is for each. */
const FOOTPRINT_BYTES = 160 * (1 << 20);
const MOST_INTERPRETERS = Math.max(8, Math.floor(totalmem() / 3 / FOOTPRINT_BYTES));

const PARALLELISM = Math.max(2, availableParallelism());

const interpreters = new Interpreters(MOST_INTERPRETERS, PARALLELISM);
/** More programs than cores would exceed their time limits. */
const cores = new Slots(PARALLELISM);

/** The Python of one episode. Names survive from one program to the next. The interpreter starts before the first program. */
export class PythonConsole {
  #lease: Lease | null = null;
  readonly #unexpect = interpreters.expect();
  readonly #signal: AbortSignal;
  readonly #guard: ProgramGuard;

  /** Closed when the signal aborts. */
  constructor(signal: AbortSignal, guard: ProgramGuard) {
    this.#signal = signal;
    this.#guard = guard;
    signal.addEventListener('abort', () => void this.close(), { once: true });
  }

  /** Delays the first episode a little, so that its first program starts fast. */
  warmUp(): Promise<void> {
    return interpreters.warmUp(WARM_UP_MS);
  }

  /**
   * Runs one program at a time. Every end of a program is a result; rejects only if no interpreter or core is free for a minute. `guard` limits
   * this program. `ranMs`: without the waits for others.
   */
  async run(code: string, guard = this.#guard): Promise<ProgramResult & { ranMs: number }> {
    const patience = AbortSignal.any([this.#signal, AbortSignal.timeout(PATIENCE_MS)]);
    this.#lease ??= await interpreters.lease(patience).finally(this.#unexpect);
    const leave = await cores.take(patience);
    const startedAt = performance.now();
    try {
      const result = await this.#runNow(this.#lease, code, guard);
      return { ...result, ranMs: performance.now() - startedAt };
    } finally {
      leave();
    }
  }

  async #runNow(lease: Lease, code: string, guard: ProgramGuard): Promise<ProgramResult> {
    const { interpreter } = lease;
    let end: Excess | 'crash' = 'crash';
    try {
      return await guard.watch(
        interpreter,
        () => interpreter.run(code),
        (excess) => (end = excess),
      );
    } catch (error) {
      await this.close();
      this.#signal.throwIfAborted();
      if (!(error instanceof InterpreterEnded)) throw error;
      return killed(error.isOutOfMemory ? 'memory' : end, guard.limits.cpuMs);
    }
  }

  async close(): Promise<void> {
    this.#unexpect();
    const lease = this.#lease;
    this.#lease = null;
    await lease?.release();
  }
}

/** Exit codes of `timeout`, of the kernel's out-of-memory killer, and of an abort. */
function killed(end: Excess | 'crash', cpuMs: number): ProgramResult {
  const ends = {
    time: { exitCode: 124, why: `was stopped, because it took more than ${cpuMs / 1000} s` },
    memory: { exitCode: 137, why: 'was stopped, because it took too much memory' },
    crash: { exitCode: 134, why: 'ended together with the interpreter' },
  };
  const { exitCode, why } = ends[end];
  const stderr = `The program ${why}. The interpreter is a new one: variables and files are gone.\n`;
  return { stdout: '', stderr, exitCode, parses: true };
}
