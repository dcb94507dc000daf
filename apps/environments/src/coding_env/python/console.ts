import { availableParallelism, totalmem } from 'node:os';
import { InterpreterEnded, type ProgramResult } from './interpreter.ts';
import { Interpreters, type Lease } from './interpreters.ts';
import { type Excess, type ProgramGuard } from './program-guard.ts';
import { Slots } from './slots.ts';

/** For a place among the interpreters, and among the programs that run. */
const PATIENCE_MS = 60_000;
/** Less than the 15 s after which clients of OpenEnv's first generation give up. */
const WARM_UP_MS = 10_000;
/** What an interpreter takes that does nothing special; half of the machine is for them. */
const FOOTPRINT_BYTES = 160 * (1 << 20);
const MOST_INTERPRETERS = Math.max(8, Math.floor(totalmem() / 2 / FOOTPRINT_BYTES));

const PARALLELISM = Math.max(2, availableParallelism());

const interpreters = new Interpreters(MOST_INTERPRETERS, PARALLELISM);
/** More programs than cores would only run into their time limits. */
const cores = new Slots(PARALLELISM);

/** The Python of one episode: what a program defines is there for the next one. Nobody waits for its start before the first program. */
export class PythonConsole {
  #lease: Lease | null = null;
  readonly #unexpect = interpreters.expect();
  readonly #signal: AbortSignal;
  readonly #guard: ProgramGuard;

  /** Ends with the signal. */
  constructor(signal: AbortSignal, guard: ProgramGuard) {
    this.#signal = signal;
    this.#guard = guard;
    signal.addEventListener('abort', () => void this.close(), { once: true });
  }

  /** The first episode of all waits a little, so that its first program does not have to wait for long. */
  warmUp(): Promise<void> {
    return interpreters.warmUp(WARM_UP_MS);
  }

  /** Every end of a program is a result; an error means that no interpreter could be had. One program at a time. */
  async run(code: string): Promise<ProgramResult> {
    const patience = AbortSignal.any([this.#signal, AbortSignal.timeout(PATIENCE_MS)]);
    this.#lease ??= await interpreters.lease(patience).finally(this.#unexpect);
    const leave = await cores.take(patience);
    try {
      return await this.#runNow(this.#lease, code);
    } finally {
      leave();
    }
  }

  async #runNow(lease: Lease, code: string): Promise<ProgramResult> {
    const { interpreter } = lease;
    let end: Excess | 'crash' = 'crash';
    try {
      return await this.#guard.watch(
        interpreter,
        () => interpreter.run(code),
        (excess) => (end = excess),
      );
    } catch (error) {
      await this.close();
      this.#signal.throwIfAborted();
      if (!(error instanceof InterpreterEnded)) throw error;
      return killed(error.isOutOfMemory ? 'memory' : end, this.#guard.limits.cpuMs);
    }
  }

  async close(): Promise<void> {
    this.#unexpect();
    const lease = this.#lease;
    this.#lease = null;
    await lease?.release();
  }
}

/** The exit codes are those of `timeout`, of a kernel out of memory, and of an abort. */
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
