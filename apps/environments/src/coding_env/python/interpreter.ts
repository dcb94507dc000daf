import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { commandOf, type Sandbox } from '../sandbox/isolation.ts';
import { makeProgramFolder } from '../sandbox/program-folder.ts';
import { ProcessEnded, SandboxedProcess, type Usage } from '../sandbox/sandboxed-process.ts';

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
/** JavaScript's memory around it grows with files' names and with output; beyond, the process ends. Text of a program becomes no JavaScript. */
const FLAGS = [
  '--max-old-space-size=96',
  '--max-semi-space-size=4',
  '--stack-size=3900',
  '--disallow-code-generation-from-strings',
  '--expose-gc',
];
const IMAGE = 'image';
const MOST_IMAGE_BYTES = 256 * MEBIBYTE;
/** Two streams; JSON needs six bytes for a character at most. */
const MOST_RESULT_BYTES = 2 * 6 * (LIMITS.outputCharacters + 100) + 1_000;

export interface ProgramResult {
  stdout: string;
  stderr: string;
  exitCode: number;
  /** Is Python at all. */
  parses: boolean;
}
/** What interpreters start from. */
export interface Runtime {
  sandbox: Sandbox;
  /** Their files, the memory image of a started interpreter among them: from it they start in a fraction of the time. */
  folder: string;
}

const outputSchema = z.string().max(LIMITS.outputCharacters + 100);
const resultSchema = z.object({ stdout: outputSchema, stderr: outputSchema, exitCode: z.int(), parses: z.boolean() }).nullable();

/** The process ended: it was closed, it crashed, ran out of memory, or sent what no interpreter sends. */
export class InterpreterEnded extends Error {
  override readonly name = 'InterpreterEnded';
  readonly isOutOfMemory: boolean;

  constructor(cause: unknown) {
    super('the interpreter ended', { cause });
    this.isOutOfMemory = cause instanceof ProcessEnded && cause.stderr.includes('out of memory');
  }
}

/** Copies the files, and makes the image in a process that no program ever runs in. */
export async function prepareRuntime(sandbox: Sandbox): Promise<Runtime> {
  const folder = await makeProgramFolder();
  try {
    const pyodide = path.dirname(fileURLToPath(import.meta.resolve('pyodide/package.json')));
    const ofPyodide = ['pyodide.asm.mjs', 'pyodide.js', 'pyodide-lock.json', 'pyodide.asm.wasm', 'python_stdlib.zip'];
    await folder.copy(
      ...ofPyodide.map((name) => path.join(pyodide, name)),
      ...['process.mjs', 'prelude.mjs', 'realm.mjs'].map((name) => path.join(import.meta.dirname, name)),
    );
    const runtime = { sandbox, folder: folder.path };
    const process = spawn(runtime, null);
    try {
      await folder.write(IMAGE, await process.receive(MOST_IMAGE_BYTES));
    } finally {
      await process.kill();
    }
    return runtime;
  } catch (error) {
    await folder.remove();
    throw error;
  }
}

function spawn({ sandbox, folder }: Runtime, image: string | null): SandboxedProcess {
  const args = ['process.mjs', JSON.stringify({ limits: LIMITS, image })];
  return new SandboxedProcess(commandOf(sandbox, { folder, flags: FLAGS, args }));
}

/** A Python of its own in a process of its own, which can be ended at any moment and has nothing but time and memory. */
export class Interpreter {
  readonly #process: SandboxedProcess;

  private constructor(process: SandboxedProcess) {
    this.#process = process;
  }

  /** Ready to run. */
  static async start(runtime: Runtime): Promise<Interpreter> {
    const process = spawn(runtime, IMAGE);
    try {
      await process.receive(MOST_RESULT_BYTES);
      await process.lock();
      return new Interpreter(process);
    } catch (error) {
      await process.kill();
      throw error;
    }
  }

  /** One program at a time. Rejects with `InterpreterEnded`; the interpreter is of no use then. */
  async run(code: string): Promise<ProgramResult> {
    try {
      // The process may be in the hands of the program: nothing that it sends is trusted.
      const result = resultSchema.parse(JSON.parse(String(await this.#process.ask(code, MOST_RESULT_BYTES))));
      if (result !== null) return result;
      throw new Error('the interpreter is beyond use');
    } catch (error) {
      await this.close();
      throw new InterpreterEnded(error);
    }
  }

  /** Of its process; null where that cannot be measured. */
  usage(): Usage | null {
    return this.#process.usage();
  }

  /** Runs when the process ends by itself, or is ended. */
  onEnd(react: () => void): void {
    this.#process.onEnd(react);
  }

  async close(): Promise<void> {
    await this.#process.kill();
  }
}
