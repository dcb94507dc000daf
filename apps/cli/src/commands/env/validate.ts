import { Command } from 'commander';
import { printable } from '../../output.ts';
import { UsageError, withInterrupt } from '../../settings.ts';
import { type Report, reportLines } from './criteria.ts';
import { secondsOf } from './options.ts';
import { validateUrl } from './validate-url.ts';

interface ValidateOptions {
  url?: string;
  json: boolean;
  timeout: number;
}

export function validateCommand(): Command {
  return new Command('validate')
    .description('check an environment in a folder or a running OpenEnv server')
    .argument('[path]', 'folder, module or http(s) URL (default: current folder)')
    .option('--url <url>', 'base URL of a running OpenEnv server')
    .option('--json', 'print the report as JSON', false)
    .option('--timeout <seconds>', 'timeout of each request to a URL', secondsOf, 5)
    .action(validate);
}

/** Exit status: 0 passed, 1 failed, 2 nothing to check. */
async function validate(argument: string | undefined, { url, json, timeout }: ValidateOptions): Promise<void> {
  if (argument !== undefined && url !== undefined) throw new UsageError('Pass a path or --url, not both.');
  const server = url ?? (argument !== undefined && /^https?:\/\//i.test(argument) ? argument : undefined);
  if (server !== undefined && !URL.canParse(/^https?:\/\//i.test(server) ? server : `http://${server}`))
    throw new UsageError(`Invalid URL "${server}".`);
  const report =
    server === undefined
      ? await withInterrupt((signal) => folderReport(argument ?? '.', signal))
      : await validateUrl(server, timeout * 1_000);
  if (json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else for (const line of reportLines(report)) process.stdout.write(`${printable(line)}\n`);
  if (!report.passed) process.exitCode = 1;
}

/** Loads the modules that play an environment only if they are needed. */
async function folderReport(folder: string, signal: AbortSignal): Promise<Report> {
  const { validatePath } = await import('./validate-path.ts');
  return validatePath(folder, signal);
}
