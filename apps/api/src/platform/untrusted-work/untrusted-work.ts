import type { OnApplicationShutdown } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { WorkProcess } from './work-process.ts';

/** Work on data that a tenant uploaded or that a tenant's server published. */
export interface UntrustedTask {
  /**
   * A file whose default export is `(input) => output` or `(input) => Promise<output>`; the structured clone algorithm copies both. Name
   * the compiled file beside the caller's: `new URL('./name.work.js', import.meta.url)`.
   */
  module: URL;
  input: unknown;
  /** Organisation for which it runs. An organisation runs one task at a time, so that it cannot take all processes. */
  owner: string;
  lane: Lane;
}

/** `check`: a user waits for a page. `file`: a user waits for an upload. The lanes do not wait for each other. */
export type Lane = 'check' | 'file';

export interface LaneLimits {
  /** Processes at the same time. */
  processes: number;
  /** How many tasks may wait, of one organisation and of all. */
  waiting: { owner: number; all: number };
  /** From the start of the process to its response, milliseconds. */
  deadlineMs: number;
  /** Resident memory of the process, bytes. */
  memoryBytes: number;
}

const MIB = 1024 * 1024;
export const LANES: Record<Lane, LaneLimits> = {
  check: { processes: 2, waiting: { owner: 8, all: 100 }, deadlineMs: 10_000, memoryBytes: 256 * MIB },
  file: { processes: 2, waiting: { owner: 8, all: 100 }, deadlineMs: 600_000, memoryBytes: 512 * MIB },
};

interface Waiting {
  task: UntrustedTask;
  start: (worker: WorkProcess) => void;
  refuse: (error: PalestraError) => void;
}

/**
 * Runs work whose cost a tenant controls, each task in its own process (docs/adr/0025). Worker threads do not suffice: a thread that
 * exceeds its `resourceLimits` by one large allocation aborts the whole process (V8 `FatalProcessOutOfMemory`), and buffers do not count.
 */
export class UntrustedWork implements OnApplicationShutdown {
  readonly #waiting: Waiting[] = [];
  readonly #running = new Map<UntrustedTask, WorkProcess>();

  constructor(private readonly lanes: Record<Lane, LaneLimits> = LANES) {}

  /**
   * Returns the module's result, or throws its PalestraError. Throws `too_expensive` when the task exceeds the deadline or the memory of
   * its lane, and `capacity_exhausted` when too many tasks wait already.
   */
  async run<Output>(task: UntrustedTask): Promise<Output> {
    const worker = await this.#turn(task);
    try {
      return (await worker.run(task.module, task.input)) as Output;
    } finally {
      this.#running.delete(task);
      this.#startNext();
    }
  }

  onApplicationShutdown(): void {
    for (const { refuse } of this.#waiting.splice(0)) refuse(new PalestraError('shutting_down', { retryAfterSeconds: 1 }));
    for (const worker of this.#running.values()) worker.stop();
  }

  async #turn(task: UntrustedTask): Promise<WorkProcess> {
    if (this.#mayStart(task)) return this.#reserve(task);
    const { waiting } = this.lanes[task.lane];
    const others = this.#waiting.filter(({ task: other }) => other.lane === task.lane);
    if (others.length >= waiting.all || others.filter(({ task: other }) => other.owner === task.owner).length >= waiting.owner) {
      throw new PalestraError('capacity_exhausted', {
        detail: 'Too many checks and file uploads are already waiting. Send the request again in a few seconds.',
        retryAfterSeconds: 5,
      });
    }
    return new Promise((start, refuse) => this.#waiting.push({ task, start, refuse }));
  }

  #mayStart({ lane, owner }: UntrustedTask): boolean {
    const running = [...this.#running.keys()].filter((other) => other.lane === lane);
    return running.length < this.lanes[lane].processes && running.every((other) => other.owner !== owner);
  }

  /** Counts the task as running, synchronously, before another task can start. */
  #reserve(task: UntrustedTask): WorkProcess {
    const worker = new WorkProcess(this.lanes[task.lane]);
    this.#running.set(task, worker);
    return worker;
  }

  #startNext(): void {
    const next = this.#waiting.findIndex(({ task }) => this.#mayStart(task));
    if (next === -1) return;
    const [{ task, start }] = this.#waiting.splice(next, 1) as [Waiting];
    start(this.#reserve(task));
  }
}
