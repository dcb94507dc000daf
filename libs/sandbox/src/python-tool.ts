import { type Session, tool, type Tool } from '@palestra/environment-kit';
import { z } from 'zod';
import { runPython, type RunPythonOptions } from './run-python.ts';

export interface PythonToolOptions<Task, State> extends Pick<RunPythonOptions, 'timeoutMs' | 'memoryMb'> {
  /** Tells the model what the program can use. */
  description?: string;
  /** Texts of files that each program finds in its working directory. */
  files?(session: Session<Task, State>): Record<string, string>;
}

const LONGEST_PROGRAM_CHARACTERS = 200_000;

/**
 * A tool that runs a Python program of the model in the sandbox and returns what it printed, without reward. Programs do not share names or
 * files. Its metadata has the exit code.
 */
export function pythonTool<Task, State>(options: PythonToolOptions<Task, State> = {}): Tool<Task, State> {
  const { timeoutMs, memoryMb, files } = options;
  return tool({
    description:
      options.description ??
      'Runs a Python program with the standard library, without network. Only what it prints is shown; nothing is kept for the next program.',
    input: z.strictObject({ code: z.string().max(LONGEST_PROGRAM_CHARACTERS).describe('A complete Python program.') }),
    async run({ code }, session: Session<Task, State>) {
      const { stdout, stderr, exitCode } = await runPython(code, {
        timeoutMs,
        memoryMb,
        files: files?.(session) ?? {},
        signal: session.signal,
      });
      const ending = exitCode === 0 ? '' : `[exit code ${exitCode}]`;
      const parts = [stdout, stderr, ending].map((part) => part.trimEnd()).filter(Boolean);
      return { content: parts.join('\n') || '(no output)', metadata: { exit_code: exitCode } };
    },
  });
}
