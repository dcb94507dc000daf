import { writeFile } from 'node:fs/promises';
import { printable, type Printed, printOne } from '../../output.ts';
import { UsageError, withClient, withInterrupt } from '../../settings.ts';
import { reportLines } from './criteria.ts';
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

/** Exit status: 0 passed, 1 failed, 2 nothing to check. */
export async function validate(argument: string | undefined, options: ValidateOptions): Promise<void> {
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
      return await playRegistered(options.environment, play);
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

async function deliver({ environments, version: played }: Validation, { report, reportFile, environment }: ValidateOptions): Promise<void> {
  const [only, ...others] = environments;
  if (only === undefined) throw new UsageError('There is no report, because the environment was not played. Pass --level semantic.');
  if (others.length > 0) throw new UsageError('The module has several environments. Pass the module of one.');
  if (reportFile !== undefined) await writeFile(reportFile, `${JSON.stringify(only.report, null, 2)}\n`);
  if (report === undefined) return;
  const name = report === true ? environment : report;
  if (name === undefined) throw new UsageError('Pass --report owner/name.');
  // The version that was played belongs to the environment of --environment only.
  const about = name === environment ? (played ?? undefined) : undefined;
  const { version } = await withClient((client) => client.environments.setReport(name, only.report, about));
  process.stderr.write(`The page of ${printable(name)} shows the report of version ${version}.\n`);
}
