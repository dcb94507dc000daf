import { InterpreterEnded, type ProgramResult } from './interpreter.ts';
import type { Lease } from './interpreters.ts';
import { pool as poolOfProcess, type PythonPool } from './pool.ts';
import { type Excess, PROGRAM_LIMITS, type ProgramLimits } from './program-guard.ts';

/** Timeout of waits for an interpreter and for a run. */
const PATIENCE_MS = 60_000;
/** Below the 15 s of OpenEnv's first clients. */
const WARM_UP_MS = 10_000;

export interface ConsoleResult extends ProgramResult {
  /** Without the waits for others. */
  ranMs: number;
  /**
   * The machine, not the program, ended the interpreter: before this program, which ran in a new one, or during it. A failure of this program
   * says nothing about it.
   */
  isInterrupted: boolean;
}

/** The Python of one episode. Names survive from one program to the next. The interpreter starts before the first program. */
export class PythonConsole {
  #lease: Lease | null = null;
  readonly #unexpect: () => void;
  readonly #signal: AbortSignal;
  readonly #limits: ProgramLimits;
  readonly #pool: PythonPool;

  /** Closed when the signal aborts. `limits`: of each program. */
  constructor(signal: AbortSignal, limits = PROGRAM_LIMITS, pool = poolOfProcess) {
    this.#signal = signal;
    this.#limits = limits;
    this.#pool = pool;
    this.#unexpect = pool.interpreters.expect();
    signal.addEventListener('abort', () => void this.close(), { once: true });
  }

  /** Delays the first episode a little, so that its first program starts fast. */
  warmUp(): Promise<void> {
    return this.#pool.interpreters.warmUp(WARM_UP_MS);
  }

  /** Runs one program at a time. Every end of a program is a result; rejects only if no interpreter or core is free for a minute. */
  async run(code: string, limits = this.#limits): Promise<ConsoleResult> {
    const { lease, leave, isRenewed } = await this.#turn();
    const startedAt = performance.now();
    try {
      const result = await this.#runNow(lease, code, limits);
      const ranMs = performance.now() - startedAt;
      return isRenewed ? { ...result, ranMs, isInterrupted: true, stderr: RENEWED + result.stderr } : { ...result, ranMs };
    } finally {
      leave();
    }
  }

  /** Waits for an interpreter and a core. `isRenewed`: the interpreter of the earlier programs ended, perhaps during this wait. */
  async #turn(): Promise<{ lease: Lease; leave: () => void; isRenewed: boolean }> {
    const { interpreters, cores } = this.#pool;
    const patience = AbortSignal.any([this.#signal, AbortSignal.timeout(PATIENCE_MS)]);
    const earlier = this.#lease;
    for (;;) {
      if (this.#lease?.hasEnded) this.#lease = null;
      const lease = (this.#lease ??= await interpreters.lease(patience, this.#signal).finally(this.#unexpect));
      const leave = await cores.take(patience, this.#signal);
      if (!lease.hasEnded) return { lease, leave, isRenewed: earlier !== null && lease !== earlier };
      leave();
    }
  }

  async #runNow(lease: Lease, code: string, limits: ProgramLimits): Promise<ProgramResult & { isInterrupted: boolean }> {
    const { interpreter } = lease;
    const ending: { by: Excess | 'crash' } = { by: 'crash' };
    try {
      const result = await this.#pool.guard.watch(
        interpreter,
        limits,
        () => interpreter.run(code),
        (excess) => (ending.by = excess),
      );
      return { ...result, isInterrupted: false };
    } catch (error) {
      await this.close();
      this.#signal.throwIfAborted();
      if (!(error instanceof InterpreterEnded)) throw error;
      const by = error.isOutOfMemory ? 'memory' : ending.by;
      return { ...killed(by, limits.cpuMs), isInterrupted: by === 'ceiling' };
    }
  }

  async close(): Promise<void> {
    this.#unexpect();
    const lease = this.#lease;
    this.#lease = null;
    await lease?.release();
  }
}

const GONE = 'The interpreter is a new one: variables and files are gone.\n';
const RENEWED = `No program ran for long, or all programs together took too much memory. ${GONE}`;

/** Exit codes of `timeout`, of the kernel's out-of-memory killer, and of an abort. */
function killed(end: Excess | 'crash', cpuMs: number): ProgramResult {
  const ends = {
    time: { exitCode: 124, why: `was stopped, because it took more than ${cpuMs / 1000} s` },
    memory: { exitCode: 137, why: 'was stopped, because it took too much memory' },
    ceiling: { exitCode: 137, why: 'was stopped, because all programs together took too much memory' },
    crash: { exitCode: 134, why: 'ended together with the interpreter' },
  };
  const { exitCode, why } = ends[end];
  return { stdout: '', stderr: `The program ${why}. ${GONE}`, exitCode, parses: true };
}
