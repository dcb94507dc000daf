import { Command } from 'commander';
import type { Printed } from '../../output.ts';
import { portOf } from './options.ts';

export interface DevOptions extends Printed {
  name?: string;
  port?: number;
  python?: string;
  open: boolean;
}

export function devCommand(): Command {
  return new Command('dev')
    .description('serve an environment, reload it on save, and open its playground')
    .argument('[path]', 'folder, or module of an environment', '.')
    .option('--name <owner/name>', 'name (default: that of openenv.yaml or the folder, in your namespace)')
    .option('--port <port>', 'port of the environment (default: that of openenv.yaml, else 8000, else any free port)', portOf)
    .option('--python <interpreter>', 'Python of a Python environment (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .option('--no-open', 'only print the link of the playground')
    .action(async (argument: string, options: DevOptions) => (await import('./dev-session.ts')).dev(argument, options));
}
