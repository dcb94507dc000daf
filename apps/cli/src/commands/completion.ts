import type { Command } from 'commander';
import { type Completion, complete } from '../completion/complete.ts';
import { SCRIPTS, type Shell } from '../completion/scripts.ts';
import { serverNames } from '../completion/server-names.ts';
import { printable } from '../printable.ts';

export function printScript(shell: Shell): void {
  process.stdout.write(SCRIPTS[shell]);
}

/** Prints the candidates for the last word. Prints nothing after an error, because the user is typing. */
export async function printCompletions(words: string[], _options: object, command: Command): Promise<void> {
  const found: Completion = await complete(command.parent!, words, serverNames).catch(() => []);
  if (found === 'files') process.stdout.write(':files\n');
  else for (const { value, description } of found) process.stdout.write(`${value}\t${printable(description)}\n`);
}
