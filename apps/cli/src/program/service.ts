import { Command, Option } from 'commander';
import { addExamples, addOutput, lazy } from './define.ts';

export function upCommand(): Command {
  const command = new Command('up')
    .description('start the Palestra service, with its data in .palestra of this folder (or PALESTRA_DATA_DIR)')
    .action(lazy(async () => (await import('../commands/up.ts')).up));
  return addExamples(command, 'palestra up', 'PORT=9000 PALESTRA_DATA_DIR=/srv/palestra palestra up');
}

export function workerCommand(): Command {
  const command = new Command('worker')
    .description('run the background jobs of a service that was started with PALESTRA_JOBS=off')
    .action(lazy(async () => (await import('../commands/up.ts')).worker));
  return addExamples(command, 'palestra worker');
}

export function migrateCommand(): Command {
  const command = new Command('migrate')
    .description('apply the migrations of this version to the database of a service, with the role of DATABASE_MIGRATION_URL')
    .action(lazy(async () => (await import('../commands/up.ts')).migrate));
  return addExamples(command, 'palestra migrate');
}

export function demoCommand(): Command {
  const command = new Command('demo')
    .description('play and upload two runs of scripted policies, as the first start of a service does')
    .addOption(new Option('--exit-with-parent', 'end when the standard input closes').hideHelp())
    .action(lazy(async () => (await import('../commands/demo.ts')).demo));
  return addExamples(command, 'palestra demo');
}

export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description('check this machine and the service, and say what to do about each problem')
    .action(lazy(async () => (await import('../commands/doctor.ts')).doctor));
  return addExamples(addOutput(command), 'palestra doctor', 'palestra doctor -o json | jq \'.[] | select(.status != "ok")\'');
}
