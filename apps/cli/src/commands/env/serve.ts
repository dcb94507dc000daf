import { Command } from 'commander';
import { withInterrupt } from '../../settings.ts';
import { portOf } from './options.ts';
import { runTarget, untilStopped } from './run.ts';
import { targetAt } from './target.ts';

export interface ServeOptions {
  port?: number;
  host: string;
  python?: string;
}

const DEFAULT_PORT = 8000;

export function serveCommand(): Command {
  return new Command('serve')
    .description('serve an environment here, until Ctrl-C: one of the kit, or a folder with openenv.yaml')
    .argument('[path]', 'folder, or module of an environment', '.')
    .option('--port <port>', 'without: the port of openenv.yaml, else 8000; 0: any free one', portOf)
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--python <interpreter>', 'of an OpenEnv environment (without: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .action(serve);
}

async function serve(given: string, { port, host, python }: ServeOptions): Promise<void> {
  const target = await targetAt(given);
  await withInterrupt(async (signal) => {
    const chosen = port ?? target.manifest?.port ?? DEFAULT_PORT;
    const { url, process: child } = await runTarget(target, { host, port: chosen, python }, signal);
    process.stdout.write(`${url}\n`);
    await untilStopped(signal);
    await child.stop();
  });
}
