import { writeFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import { printable, type Printed, printOne } from '../../output.ts';
import { UsageError, withClient, withInterrupt } from '../../settings.ts';
import { reportLines } from './criteria.ts';
import { secondsOf } from './options.ts';
import { environmentReportLines, isPassed } from './report-lines.ts';
import type { PlayOptions, Validation } from './validate-play.ts';
import { validateUrl } from './validate-url.ts';

interface ValidateOptions extends Printed {
  url?: string;
  environment?: string;
  level?: 'static' | 'semantic';
  tasks: number;
  playerTasks: number;
  split?: string;
  rewardRange?: [number, number];
  setupTimeout: number;
  deadline: number;
  python?: string;
  json: boolean;
  timeout: number;
  report?: string | true;
  reportFile?: string;
}

export function validateCommand(): Command {
  return new Command('validate')
    .description('check an environment in a folder, on a running server, or registered with the service')
    .argument('[path]', 'folder, module or http(s) URL (default: current folder)')
    .option('--url <url>', 'base URL of a running ORS or OpenEnv server')
    .option('--environment <owner/name>', 'an environment that is registered with the service')
    .addOption(
      new Option('--level <level>', 'static: do not play it; semantic: play it (default: static for OpenEnv, else semantic)').choices([
        'static',
        'semantic',
      ]),
    )
    .option('--tasks <count>', 'tasks of each split that the checks play', countOf, 10)
    .option('--player-tasks <count>', 'tasks that each scripted player plays; 0 plays none', countOf, 100)
    .option('--split <name>', 'split of the scores of players (default: the first of type test, else the first)')
    .option('--reward-range <low,high>', 'smallest and largest total reward, for a server (default: 0,1)', rangeOf)
    .option('--setup-timeout <seconds>', 'time until a session must have its prompt', secondsOf, 30)
    .option('--deadline <seconds>', 'time for the whole validation', secondsOf, 600)
    .option('--python <interpreter>', 'Python of a Python folder (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .option('--json', 'same as --output json', false)
    .option('--timeout <seconds>', 'timeout of each static check of a URL', secondsOf, 5)
    .option('--report [owner/name]', 'send the report to the page of this environment (default: that of --environment)')
    .option('--report-file <file>', 'write the report as JSON to this file')
    .action(validate);
}

/** Exit status: 0 passed, 1 failed, 2 nothing to check. */
async function validate(argument: string | undefined, options: ValidateOptions): Promise<void> {
  if ([argument, options.url, options.environment].filter((one) => one !== undefined).length > 1)
    throw new UsageError('Pass a path, --url or --environment, not several.');
  const validation = await withInterrupt((signal) => run(argument, options, signal));
  const { report, environments, note } = validation;
  const passed = (report?.passed ?? true) && environments.every(({ report: one }) => isPassed(one));
  const body = { ...report, ...(environments.length > 0 && { environments }), ...(note !== null && { note }), passed };
  const shown = report !== null && environments.length === 0 ? report : body;
  await printOne({ output: options.json ? 'json' : options.output }, shown, () => {
    const lines = [
      ...(report === null ? [] : reportLines(report)),
      ...environments.flatMap((one) => environmentReportLines(one.name, one.report)),
    ];
    for (const line of lines) process.stdout.write(`${printable(line)}\n`);
    if (note !== null) process.stderr.write(`${printable(note)}\n`);
  });
  if (options.reportFile !== undefined || options.report !== undefined) await deliver(validation, options);
  if (!passed) process.exitCode = 1;
}

async function run(argument: string | undefined, options: ValidateOptions, signal: AbortSignal): Promise<Validation> {
  const { tasks, playerTasks, split, rewardRange = null, setupTimeout, deadline, level, python } = options;
  const late = new Error(`Validation took longer than ${deadline} s. Pass fewer --tasks and --player-tasks, or a longer --deadline.`);
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(late), deadline * 1_000);
  const play: PlayOptions = {
    tasks,
    playerTasks,
    playerSplit: split,
    setupTimeoutMs: setupTimeout * 1_000,
    rewardRange,
    python,
    signal: AbortSignal.any([signal, timeout.signal]),
  };
  try {
    // The modules that play an environment are loaded only if they are needed.
    const { playRegistered, playServer } = await import('./validate-play.ts');
    if (options.environment !== undefined) {
      if (level === 'static') throw new UsageError('A registered environment can only be played: omit --level static.');
      return { report: null, environments: [await playRegistered(options.environment, play)], note: null };
    }
    const url = options.url ?? (argument !== undefined && /^https?:\/\//i.test(argument) ? argument : undefined);
    if (url !== undefined) {
      if (!URL.canParse(/^https?:\/\//i.test(url) ? url : `http://${url}`)) throw new UsageError(`Invalid URL "${url}".`);
      return await playServer(url, level, play, () => validateUrl(url, options.timeout * 1_000, play.signal));
    }
    const { validatePath } = await import('./validate-path.ts');
    return await validatePath(argument ?? '.', level, play);
  } finally {
    clearTimeout(timer);
  }
}

async function deliver({ environments }: Validation, { report, reportFile, environment }: ValidateOptions): Promise<void> {
  const [only, ...others] = environments;
  if (only === undefined) throw new UsageError('There is no report, because the environment was not played. Pass --level semantic.');
  if (others.length > 0) throw new UsageError('The module has several environments. Pass the module of one.');
  if (reportFile !== undefined) await writeFile(reportFile, `${JSON.stringify(only.report, null, 2)}\n`);
  if (report === undefined) return;
  const name = report === true ? environment : report;
  if (name === undefined) throw new UsageError('Pass --report owner/name.');
  const { version } = await withClient((client) => client.environments.setReport(name, only.report));
  process.stderr.write(`The page of ${printable(name)} shows the report of version ${version}.\n`);
}

function countOf(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 0 || count > 10_000)
    throw new UsageError(`Invalid number "${text}". Expected a whole number from 0 to 10 000.`);
  return count;
}

function rangeOf(text: string): [number, number] {
  const [low, high, ...rest] = text.split(',').map(Number);
  if (!Number.isFinite(low) || !Number.isFinite(high) || rest.length > 0 || low! >= high!)
    throw new UsageError(`Invalid range "${text}". Expected two numbers such as 0,1 or -1,1.`);
  return [low!, high!];
}
