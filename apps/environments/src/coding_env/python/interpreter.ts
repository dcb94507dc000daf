import { Worker } from 'node:worker_threads';
import { z } from 'zod';

const MEBIBYTE = 1 << 20;
/** Of one interpreter. */
export const LIMITS = {
  /** Python's own memory; what goes beyond is a MemoryError. */
  memoryBytes: 256 * MEBIBYTE,
  /** Written to files in a whole episode; what goes beyond is an OSError. */
  fileBytes: 64 * MEBIBYTE,
  /** Kept of each stream of one program. */
  outputCharacters: 50_000,
};
/** JavaScript's memory around it, which grows with files' names and with output; beyond, the thread ends. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, codeRangeSizeMb: 64, stackSizeMb: 4 };

export interface ProgramResult {
  stdout: string;
  stderr: string;
  exitCode: number;
  /** Is Python at all. */
  parses: boolean;
}
/** Memory of a started interpreter: others start from it in a fraction of the time. */
export type Image = SharedArrayBuffer;

const resultSchema = z.object({ stdout: z.string(), stderr: z.string(), exitCode: z.int(), parses: z.boolean() });

/** The thread ended: it was closed, it crashed, or ran out of memory. */
export class InterpreterEnded extends Error {
  override readonly name = 'InterpreterEnded';
  readonly isOutOfMemory: boolean;

  constructor(cause: unknown) {
    super('the interpreter ended', { cause });
    this.isOutOfMemory = (cause as { code?: string } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
  }
}

/** A Python of its own in a thread of its own, which can be ended at any moment and has nothing but time and memory. */
export class Interpreter {
  readonly #worker: Worker;
  readonly #ended: Promise<never>;

  private constructor(image: Image | null) {
    this.#worker = new Worker(new URL('worker.mjs', import.meta.url), {
      workerData: { image, limits: LIMITS },
      resourceLimits: RESOURCE_LIMITS,
      env: {},
      argv: [],
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
    });
    this.#ended = new Promise<never>((_, reject) => {
      let cause: unknown = null;
      this.#worker.once('error', (error) => (cause = error));
      this.#worker.once('exit', () => reject(new InterpreterEnded(cause)));
    });
    this.#ended.catch(() => {});
  }

  /** Ready to run; the image is one to start others from, null if it was started from one itself. */
  static async start(from: Image | null): Promise<{ interpreter: Interpreter; image: Image | null }> {
    const interpreter = new Interpreter(from);
    const { image } = (await interpreter.#next()) as { image: Image | null };
    return { interpreter, image };
  }

  /** One program at a time. Rejects with `InterpreterEnded`; no other error leaves the interpreter of use either. */
  async run(code: string): Promise<ProgramResult> {
    const answer = this.#next();
    this.#worker.postMessage({ code });
    const { result } = (await answer) as { result: string | null };
    if (result === null) {
      await this.close();
      throw new InterpreterEnded(null);
    }
    return resultSchema.parse(JSON.parse(result));
  }

  /** Runs when the thread ends by itself, or is ended. */
  onEnd(react: () => void): void {
    this.#ended.catch(react);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  async #next(): Promise<unknown> {
    const wait = new AbortController();
    const message = new Promise((resolve) => {
      this.#worker.once('message', resolve);
      wait.signal.addEventListener('abort', () => this.#worker.off('message', resolve), { once: true });
    });
    try {
      return await Promise.race([message, this.#ended]);
    } finally {
      wait.abort();
    }
  }
}
