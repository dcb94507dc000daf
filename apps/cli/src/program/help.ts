import { Argument, Command } from 'commander';
import { SHELLS } from '../completion/scripts.ts';
import { addExamples, lazy } from './define.ts';

export function helpCommand(): Command {
  const command = new Command('help')
    .description('show the help of a command, or the exit codes')
    .argument('[command...]', 'a command such as "env push", or "exit-codes"')
    .action(lazy(async () => (await import('../commands/help.ts')).showHelp));
  return addExamples(command, 'palestra help env push', 'palestra help exit-codes');
}

export function completionCommand(): Command {
  const command = new Command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'name of the shell').choices(SHELLS))
    .action(lazy(async () => (await import('../commands/completion.ts')).printScript));
  return addExamples(
    command,
    'source <(palestra completion bash) # in ~/.bashrc',
    'palestra completion zsh > ~/.zfunc/_palestra # in a folder of $fpath',
    'palestra completion fish > ~/.config/fish/completions/palestra.fish',
  );
}

/** What the completion scripts call: `palestra __complete -- WORDS`, the words after `palestra` up to the cursor. */
export const completeCommand = (): Command =>
  new Command('__complete').argument('[words...]').action(lazy(async () => (await import('../commands/completion.ts')).printCompletions));
