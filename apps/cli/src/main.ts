#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander';
import { demo } from './commands/demo.ts';
import { doctor } from './commands/doctor.ts';
import { dockerCommand } from './commands/docker.ts';
import { environmentCommands } from './commands/environments.ts';
import { keyCommands } from './commands/keys.ts';
import { prepareTasks, type PrepareOptions } from './commands/prepare-tasks.ts';
import { runCommands } from './commands/runs.ts';
import { taskCommands } from './commands/tasks.ts';
import { up } from './commands/up.ts';
import { describeError } from './error-text.ts';
import { UsageError } from './settings.ts';

const collect = (value: string, earlier: string[] = []) => [...earlier, value];

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new UsageError(`expected a whole number from 1 on, got ${text}`);
  return value;
}

function buildProgram(): Command {
  const program = new Command('palestra').description('Environments, sessions and rollouts of a Palestra server').version('0.1.0');
  program.command('up').description('start a server here (as npm start)').action(up);
  program.command('demo').description('play 8 mysteries x 4 samples with a scripted policy and upload them').action(demo);
  program.command('doctor').description('check the server, the key and how programs of models are isolated').action(doctor);
  program
    .command('prepare-tasks')
    .description('write tasks as Parquet or JSON lines, as SkyRL trains on them')
    .requiredOption('--env <owner/name>', 'environment; repeatable', collect)
    .option('--split <name>', 'split', 'train')
    .option('--output <file>', '.parquet, else JSON lines', 'tasks.parquet')
    .option('--max-tasks <count>', 'per environment', positive)
    .option('--concurrency <count>', 'read by so many sessions from here (without: on the server, else by 32)', positive)
    .addOption(new Option('--prompt-format <format>', 'JSON text, or a list of messages').choices(['text', 'messages']).default('text'))
    .action((options: PrepareOptions) => prepareTasks(options));
  for (const command of [environmentCommands(), taskCommands(), keyCommands(), dockerCommand(), ...runCommands(positive)])
    program.addCommand(command);
  return program;
}

// Whoever reads has heard enough ("| head"): no fault of anybody.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.stderr.write(`palestra: cannot write: ${describeError(error)}\n`);
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});
try {
  await buildProgram().parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) process.stderr.write(`palestra: ${describeError(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
