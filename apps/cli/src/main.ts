#!/usr/bin/env node
import { type Command, CommanderError } from 'commander';
import { EXIT } from './exit-codes.ts';
import { requestedFormat } from './output-format.ts';
import { buildProgram } from './program/program.ts';

// EPIPE means that the reader closed the pipe, as "| head" does. It is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.stderr.write(`palestra: Cannot write: ${error.message}\n`);
  process.exit(error.code === 'EPIPE' ? process.exitCode : EXIT.failed);
});

// A reader of progress and notes that left must not end an upload or leave sessions open.
process.stderr.on('error', () => {});

const words = process.argv.slice(2);
/** The caller reads data, so errors are one line of JSON. */
const isForPrograms = requestedFormat(words) !== 'table';
try {
  const program = buildProgram();
  if (isForPrograms) silenceErrors(program);
  await program.parseAsync();
} catch (error) {
  await report(error);
}

async function report(error: unknown): Promise<void> {
  // Commander has printed the help or the error.
  if (error instanceof CommanderError && (error.exitCode === 0 || !isForPrograms)) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return;
  }
  const { describeError, errorView, exitCodeOf } = await import('./error-text.ts');
  process.exitCode = exitCodeOf(error);
  process.stderr.write(isForPrograms ? `${JSON.stringify(errorView(error))}\n` : `palestra: ${describeError(error)}\n`);
}

/** Commander prints no error. */
function silenceErrors(command: Command): void {
  command.configureOutput({ outputError: () => {} });
  command.commands.forEach(silenceErrors);
}
