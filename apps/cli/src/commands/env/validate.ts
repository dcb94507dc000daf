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
    .description('check an environment: a folder, or a running OpenEnv server')
    .argument('[path]', 'folder, module or http(s) URL (without: here)')
    .option('--url <url>', 'base URL of a running OpenEnv server')
    .option('--json', 'the report as JSON', false)
    .option('--timeout <seconds>', 'for each request to a URL', secondsOf, 5)
    .action(validate);
}

/** Exit status: 0 passed, 1 failed, 2 there is nothing that could be checked. */
async function validate(given: string | undefined, { url, json, timeout }: ValidateOptions): Promise<void> {
  if (given !== undefined && url !== undefined) throw new UsageError('give a path or --url, not both');
  const server = url ?? (given !== undefined && /^https?:\/\//i.test(given) ? given : undefined);
  if (server !== undefined && !URL.canParse(/^https?:\/\//i.test(server) ? server : `http://${server}`))
    throw new UsageError(`not a URL: ${server}`);
  const report =
    server === undefined ? await withInterrupt((signal) => folderReport(given ?? '.', signal)) : await validateUrl(server, timeout * 1_000);
  if (json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else for (const line of reportLines(report)) process.stdout.write(`${printable(line)}\n`);
  if (!report.passed) process.exitCode = 1;
}

/** What it takes to play an environment is loaded only for it. */
async function folderReport(given: string, signal: AbortSignal): Promise<Report> {
  const { validatePath } = await import('./validate-path.ts');
  return validatePath(given, signal);
}
