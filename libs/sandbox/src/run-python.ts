import { isolation, requireSandbox } from './process/isolation.ts';
import { PythonConsole } from './python/console.ts';
import { pool } from './python/pool.ts';
import { PROGRAM_LIMITS } from './python/program-guard.ts';

export interface RunPythonOptions {
  /** Texts of files by path, relative to the working directory of the program. */
  files?: Record<string, string>;
  /** Text that the program reads from its standard input. Default: empty. */
  stdin?: string;
  /** Processor time of the program. Default 5 000, at most 60 000. Sleeping and waiting count for less: 2.4 times as long by the clock. */
  timeoutMs?: number;
  /** Memory that the program may use in addition to the interpreter. Default and maximum: 480. Above 256 Python itself raises MemoryError. */
  memoryMb?: number;
  /** Ends the program. Programs that wait take turns by their signals, so that one session with many programs does not delay others. */
  signal?: AbortSignal;
}

export interface RunPythonResult {
  /** At most 50 000 characters. */
  stdout: string;
  /** At most 50 000 characters, with the traceback of an uncaught exception. */
  stderr: string;
  /** 0 for success; 1 for an uncaught exception; 124 for too much time, 137 for too much memory, 134 for a crash. */
  exitCode: number;
}

const MEBIBYTE = 1 << 20;
/** Resident memory of an interpreter that runs no program. */
const INTERPRETER_BYTES = 160 * MEBIBYTE;
const MOST = { timeoutMs: 60_000, memoryMb: PROGRAM_LIMITS.memoryBytes / MEBIBYTE - 160, characters: 8_000_000 };
/** How long a program waits for its turn, which does not count for its time. */
const PATIENCE_MS = 600_000;
/** Programs without a signal wait as those of one session. */
const WITHOUT_SIGNAL = new AbortController().signal;
/** Wall time for a given processor time, as in `PROGRAM_LIMITS`. */
const WALL_FACTOR = PROGRAM_LIMITS.wallMs / PROGRAM_LIMITS.cpuMs;

/**
 * Runs a Python program in a fresh isolated interpreter (docs/adr/0024-programs-run-in-sandboxed-processes.md): standard library only, no
 * network, no files of this machine. Every end of the program is a result. Rejects with `isolation_required` if programs cannot be isolated
 * here, with a RangeError for options out of range, and with an error if the machine has no memory for it beside the other programs.
 */
export async function runPython(code: string, options: RunPythonOptions = {}): Promise<RunPythonResult> {
  const { files = {}, stdin = '', timeoutMs = PROGRAM_LIMITS.cpuMs, memoryMb = MOST.memoryMb, signal } = options;
  within('timeoutMs', timeoutMs, 1, MOST.timeoutMs);
  within('memoryMb', memoryMb, 1, MOST.memoryMb);
  const input = JSON.stringify([files, stdin]);
  within('The length of code, files and stdin', code.length + input.length, 0, MOST.characters);
  requireSandbox(await isolation());
  const limits = {
    cpuMs: timeoutMs,
    wallMs: timeoutMs * WALL_FACTOR,
    memoryBytes: INTERPRETER_BYTES + memoryMb * MEBIBYTE,
  };
  const owner = signal ?? WITHOUT_SIGNAL;
  const leave = await pool.singles.take(AbortSignal.any([owner, AbortSignal.timeout(PATIENCE_MS)]), owner);
  const ended = new AbortController();
  const python = new PythonConsole(AbortSignal.any([owner, ended.signal]));
  try {
    const prepared = await python.run(prepare(input));
    if (prepared.exitCode !== 0)
      throw new Error(`The files of the program could not be written: ${prepared.stderr.trim().split('\n').at(-1)}`);
    const { stdout, stderr, exitCode, isInterrupted } = await python.run(code, limits);
    if (isInterrupted) throw new Error('All programs of this machine together took too much memory. Run the program again.');
    return { stdout, stderr, exitCode };
  } finally {
    ended.abort();
    await python.close();
    leave();
  }
}

function within(name: string, value: number, low: number, high: number): void {
  if (!(value >= low && value <= high)) throw new RangeError(`${name} must be ${low} to ${high}, not ${value}.`);
}

/** Writes the files, gives the standard input its text, and leaves no name behind. A JSON string is a valid string of Python. */
const prepare = (input: string): string => `
def _prepare(files, text):
    import io, os, sys
    for name, content in files.items():
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "w", encoding="utf-8", newline="") as file:
            file.write(content)
    sys.stdin = io.StringIO(text)
import json
_prepare(*json.loads(${JSON.stringify(input)}))
del _prepare, json
`;
