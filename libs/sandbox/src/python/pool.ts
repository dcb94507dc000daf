import { availableParallelism, totalmem } from 'node:os';
import { Interpreters } from './interpreters.ts';
import { PROGRAM_LIMITS, ProgramGuard } from './program-guard.ts';
import { Slots } from './slots.ts';

/** Memory of an idle interpreter. */
const FOOTPRINT_BYTES = 160 * (1 << 20);
/** Memory that the interpreters of one process may use: a third of the machine's, because two bundled environments run programs. */
const SHARE_BYTES = totalmem() / 3;
const LEAST_INTERPRETERS = 8;

export interface PoolLimits {
  /** Programs that run at the same time. More than cores would exceed their time limits. */
  parallelism: number;
  /** Interpreters of episodes. As many spares as `parallelism` come on top. */
  interpreters: number;
  /** Resident memory of all interpreters. */
  ceilingBytes: number;
}

function limitsOfMachine(): PoolLimits {
  const parallelism = Math.max(2, availableParallelism());
  const interpreters = Math.max(LEAST_INTERPRETERS, Math.floor(SHARE_BYTES / FOOTPRINT_BYTES) - parallelism);
  // On a small machine the least number of interpreters and one large program must fit.
  const ceilingBytes = Math.max(SHARE_BYTES, (interpreters + parallelism) * FOOTPRINT_BYTES + PROGRAM_LIMITS.memoryBytes);
  return { parallelism, interpreters, ceilingBytes };
}

/** All interpreters of a process, idle ones and spares included: their number, the programs that run, and their memory are bounded. */
export class PythonPool {
  readonly guard: ProgramGuard;
  readonly interpreters: Interpreters;
  readonly cores: Slots;
  /** Programs that need an interpreter for themselves alone: some start theirs while others run. */
  readonly singles: Slots;

  constructor({ parallelism, interpreters, ceilingBytes } = limitsOfMachine()) {
    this.guard = new ProgramGuard(ceilingBytes);
    this.interpreters = new Interpreters(interpreters, parallelism, this.guard);
    this.cores = new Slots(parallelism);
    this.singles = new Slots(Math.min(2 * parallelism, interpreters));
  }
}

/** Of this process. */
export const pool = new PythonPool();
