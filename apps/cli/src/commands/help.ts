import type { Command } from 'commander';
import { EXIT_CODES } from '../exit-codes.ts';
import { printTable } from '../output.ts';
import { UsageError } from '../server-settings.ts';

export function showHelp(words: string[], _options: object, command: Command): void {
  if (words.join(' ') === 'exit-codes') {
    printTable(['code', 'meaning'], EXIT_CODES);
    process.stdout.write('\n"palestra docker" has the exit codes of Docker.\n');
    return;
  }
  let found = command.parent!;
  for (const word of words) {
    const next = found.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (next === undefined) throw new UsageError(`No command "${words.join(' ')}". "palestra help" lists all commands.`);
    found = next;
  }
  found.outputHelp();
}
