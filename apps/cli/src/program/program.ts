import { VERSION } from '@palestra/protocol/version';
import { Command } from 'commander';
import { coloured } from '../colour.ts';
import { compareCommand } from './compare.ts';
import { addExamples } from './define.ts';
import { dockerCommand } from './docker.ts';
import { environmentsCommand } from './environments.ts';
import { evalCommand } from './eval.ts';
import { completeCommand, completionCommand, helpCommand } from './help.ts';
import { keysCommand } from './keys.ts';
import { servePythonCommand } from './library-options.ts';
import { prepareTasksCommand } from './prepare-tasks.ts';
import { rolloutsCommand } from './rollouts.ts';
import { runsCommand } from './runs.ts';
import { demoCommand, doctorCommand, migrateCommand, upCommand, workerCommand } from './service.ts';
import { tasksCommand } from './tasks.ts';

/**
 * The tree of all commands: the only definition of their names, arguments, options, help, completion and document. It loads no module that a
 * command needs to run.
 */
export function buildProgram(): Command {
  const program = new Command('palestra')
    .description('Environments, sessions and rollouts of a Palestra service')
    .version(VERSION)
    .option('--no-color', 'no colours, as with the variable NO_COLOR')
    .helpCommand(false);
  // Not in an action: help and errors have colours, too.
  program.on('option:no-color', () => {
    process.env['NO_COLOR'] = '1';
  });
  const commands = [
    upCommand(),
    workerCommand(),
    migrateCommand(),
    doctorCommand(),
    demoCommand(),
    environmentsCommand(),
    servePythonCommand(),
    tasksCommand(),
    prepareTasksCommand(),
    evalCommand(),
    runsCommand(),
    rolloutsCommand(),
    compareCommand(),
    keysCommand(),
    dockerCommand(),
    completionCommand(),
    helpCommand(),
  ];
  for (const command of commands) program.addCommand(command);
  program.addCommand(completeCommand(), { hidden: true });
  addExamples(program, 'palestra up', 'palestra doctor', 'palestra env init guess', 'palestra runs -o json', 'palestra help env push');
  configure(program);
  return program;
}

/** Settings of all commands, which `addCommand` does not pass on: errors are thrown and begin like ours, and titles of help are bold. */
function configure(command: Command): void {
  command.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'palestra: ')) });
  command.exitOverride().configureHelp({ styleTitle: (title) => coloured(process.stdout, 'bold', title) });
  command.commands.forEach(configure);
}
