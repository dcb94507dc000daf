#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander';
import { VERSION } from '@palestra/protocol/version';
import { compareCommand } from './commands/compare.ts';
import { demo } from './commands/demo.ts';
import { doctor } from './commands/doctor.ts';
import { dockerCommand } from './commands/docker.ts';
import { environmentCommands } from './commands/environments.ts';
import { keyCommands } from './commands/keys.ts';
import { prepareTasks, type PrepareOptions } from './commands/prepare-tasks.ts';
import { runCommands } from './commands/runs.ts';
import { taskCommands } from './commands/tasks.ts';
import { migrate, up, worker } from './commands/up.ts';
import { describeError } from './error-text.ts';
import { UsageError } from './settings.ts';

const collect = (value: string, earlier: string[] = []) => [...earlier, value];

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new UsageError(`Invalid number "${text}". Expected a whole number of at least 1.`);
  return value;
}

function buildProgram(): Command {
  const program = new Command('palestra').description('Environments, sessions and rollouts of a Palestra server').version(VERSION);
  program.command('up').description('start a server, with its data in .palestra of this folder').action(up);
  program.command('worker').description('run the background jobs of a server, which has PALESTRA_JOBS=off').action(worker);
  program.command('migrate').description('apply migrations to the database of a server, as DATABASE_MIGRATION_URL').action(migrate);
  program
    .command('demo')
    .description('play two runs with scripted policies and upload them, as the first start of a server does')
    .addOption(new Option('--exit-with-parent', 'end when the standard input closes').hideHelp())
    .action(demo);
  program.command('doctor').description('check the server, the API key and the isolation of programs of models').action(doctor);
  program
    .command('prepare-tasks')
    .description('write tasks as Parquet or JSON lines for SkyRL')
    .requiredOption('--env <owner/name>', 'environment; repeatable', collect)
    .option('--split <name>', 'split', 'train')
    .option('--output <file>', 'file to write: .parquet, else JSON lines', 'tasks.parquet')
    .option('--max-tasks <count>', 'maximum tasks per environment', positive)
    .option('--concurrency <count>', 'read with this many sessions of this command (default: on the server, else 32)', positive)
    .addOption(
      new Option('--prompt-format <format>', 'prompt as JSON text or as a list of messages').choices(['text', 'messages']).default('text'),
    )
    .action((options: PrepareOptions) => prepareTasks(options));
  for (const command of [environmentCommands(), taskCommands(), keyCommands(), dockerCommand(), compareCommand(), ...runCommands(positive)])
    program.addCommand(command);
  return program;
}

// EPIPE means that the reader closed the pipe, as "| head" does. It is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.stderr.write(`palestra: Cannot write: ${describeError(error)}\n`);
  process.exit(error.code === 'EPIPE' ? process.exitCode : 1);
});
try {
  await buildProgram().parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) process.stderr.write(`palestra: ${describeError(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
