import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { commandOf, type Sandbox } from '../process/isolation.ts';
import { makeProgramFolder } from '../process/program-folder.ts';
import { ProcessEnded, SandboxedProcess, type Usage } from '../process/sandboxed-process.ts';

const MEBIBYTE = 1 << 20;
/** Limits of one interpreter. */
export const LIMITS = {
  /** Python's memory; beyond it programs get a MemoryError. */
  memoryBytes: 256 * MEBIBYTE,
  /** Bytes written to files per episode; beyond it programs get an OSError. */
  fileBytes: 64 * MEBIBYTE,
  /** Stored output per stream and program. */
  outputCharacters: 50_000,
};
/** Memory of JavaScript, which grows with file names and output; beyond it the process ends. Program text does not become JavaScript. */
const FLAGS = [
  '--max-old-space-size=96',
  '--max-semi-space-size=4',
  '--stack-size=3900',
  '--disallow-code-generation-from-strings',
  '--expose-gc',
];
const IMAGE = 'image';
const MOST_IMAGE_BYTES = 256 * MEBIBYTE;
/** Two streams; a character needs at most six bytes of JSON. */
const MOST_RESULT_BYTES = 2 * 6 * (LIMITS.outputCharacters + 100) + 1_000;

export interface ProgramResult {
  stdout: string;
  stderr: string;
  exitCode: number;
  /** Files of Pyodide. */
  parses: boolean;
}
/** Files that interpreters start from. */
export interface Runtime {
  sandbox: Sandbox;
  /** Folder with the files and the memory image of a started interpreter, from which others start much faster. */
  folder: string;
}

const outputSchema = z.string().max(LIMITS.outputCharacters + 100);
const resultSchema = z.object({ stdout: outputSchema, stderr: outputSchema, exitCode: z.int(), parses: z.boolean() }).nullable();

/** The process ended: closed, crashed, out of memory, or after an invalid message. */
export class InterpreterEnded extends Error {
  override readonly name = 'InterpreterEnded';
  readonly isOutOfMemory: boolean;

  constructor(cause: unknown) {
    super('the interpreter ended', { cause });
    this.isOutOfMemory = cause instanceof ProcessEnded && cause.stderr.includes('out of memory');
  }
}

/** Copies the files and creates the image in a process that never runs a program. */
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

/** A Python in its own process, which can be killed at any moment and has only time and memory. */
export class Interpreter {
  readonly #process: SandboxedProcess;
  #isClosed = false;

  private constructor(process: SandboxedProcess) {
    this.#process = process;
  }

  /** Resolves when ready. */
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

  /** Runs one program at a time. Rejects with `InterpreterEnded`; the interpreter is then unusable. */
  async run(code: string): Promise<ProgramResult> {
    try {
      // The program may control the process, so its messages are not trusted.
      const result = resultSchema.parse(JSON.parse(String(await this.#process.ask(code, MOST_RESULT_BYTES))));
      if (result !== null) return result;
      throw new Error('the interpreter is beyond use');
    } catch (error) {
      await this.close();
      throw new InterpreterEnded(error);
    }
  }

  /** Memory of the process; null if it cannot be measured. */
  usage(): Usage | null {
    return this.#process.usage();
  }

  /** Whether it keeps the event loop running. A spare does not. */
  keepAlive(isNeeded: boolean): void {
    this.#process.keepAlive(isNeeded);
  }

  /** Called when the process ends. */
  onEnd(react: () => void): void {
    this.#process.onEnd(react);
  }

  /** Whether `close` was called: the process may take some time to end. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#process.kill();
  }
}
