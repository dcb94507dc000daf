import { Command, Option } from 'commander';
import { type ComparedRuns, type CompareMetric, DENOMINATORS, KNOWN_PHASES } from '@palestra/protocol';
import { formatReward } from '@palestra/kit/reward-text';
import { describeError } from '../error-text.ts';
import { printable, printTable } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';
import { type Condition, type Outcome, outcomesOf, parseCondition, parseMetric, statusOf } from './compare-conditions.ts';

interface CompareOptions {
  steps: string;
  metric?: CompareMetric[];
  env?: string;
  phase?: string;
  den?: string;
  failIf?: Condition[];
  output: 'table' | 'json';
}

/** The exit status when the server gave no answer: neither 0 nor 1, so that a script does not take it for a result. */
const NO_ANSWER = 3;
const MAX_RUNS = 4;

const collectMetric = (name: string, earlier: CompareMetric[] = []) => [...earlier, parseMetric(name)];
const collectCondition = (text: string, earlier: Condition[] = []) => [...earlier, parseCondition(text)];

export function compareCommand(): Command {
  return new Command('compare')
    .description('compare runs with the first one; exit status 1 if a condition is met, 2 for wrong usage, 3 without a result')
    .argument('<runs...>', 'two to four runs, by name or id')
    .option('--steps <steps>', 'common (steps that every run has), all, or a range of common steps such as 10..20', parseSteps, 'common')
    .option('--metric <name>', 'show this metric only; repeatable', collectMetric)
    .option('--env <owner/name>', 'rollouts of this environment only')
    .addOption(new Option('--phase <phase>', 'phase (default: that with the most rollouts of the first run)').choices(KNOWN_PHASES))
    .addOption(new Option('--den <denominator>', 'rollouts that count').choices(DENOMINATORS).default('effective'))
    .option('--fail-if <condition>', 'such as "reward_mean<-0.02" or "success.low<-0.05"; repeatable', collectCondition)
    .addOption(new Option('-o, --output <format>', 'output').choices(['table', 'json']).default('table'))
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .action(compareRuns);
}

function parseSteps(text: string): string {
  if (!/^(?:common|all|\d{1,9}(?:\.\.\d{0,9})?|\.\.\d{1,9})$/.test(text))
    throw new UsageError(`Invalid steps "${text}". Expected common, all, or a range such as 10..20.`);
  return text;
}

async function compareRuns(runs: string[], { failIf = [], metric, output, ...query }: CompareOptions): Promise<void> {
  if (runs.length < 2 || runs.length > MAX_RUNS)
    throw new UsageError(`Expected two to four runs, not ${runs.length}. Usage: palestra compare RUN RUN`);
  let answer: ComparedRuns;
  try {
    answer = await withClient((client) => client.runs.compare(runs, query));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    process.stderr.write(`palestra: ${describeError(error)}\n`);
    process.exitCode = NO_ANSWER;
    return;
  }
  const outcomes = outcomesOf(failIf, answer);
  if (output === 'json') process.stdout.write(`${JSON.stringify({ ...answer, conditions: outcomes }, null, 2)}\n`);
  else print(answer, outcomes, metric);
  process.exitCode = statusOf(outcomes);
}

const digits = (value: number): string => formatReward(value);
const signed = (value: number): string => formatReward(value, { signed: true });
const letterOf = (at: number): string => 'ABCD'[at]!;

function print(
  { runs, steps, pairs, den, phase, cut }: ComparedRuns,
  outcomes: readonly Outcome[],
  only: readonly CompareMetric[] | undefined,
): void {
  const letters = new Map(runs.map(({ id }, at) => [id, letterOf(at)]));
  printTable(
    ['run', 'name', 'tasks', 'rollouts', 'left out'],
    runs.map(({ name, tasks, samples, left_out }, at) => [letterOf(at), name, tasks, samples, left_out]),
  );
  process.stdout.write(`\n${steps.words} ${phase === null ? '' : `Phase ${phase}. `}Denominator ${den}.\n`);
  if (cut !== null) process.stdout.write(`Only ${cut} tasks of each run are compared.\n`);
  process.stdout.write('\n');
  const shown = pairs.flatMap(({ run, metrics }, at) =>
    metrics
      .filter((one) => only === undefined || only.includes(one.metric))
      .map((one) => ({ ...one, pair: `${letterOf(at + 1)} - A`, run })),
  );
  printTable(
    ['runs', 'metric', 'first', 'other', 'difference', '95 % interval', 'p', 'method', 'tasks', 'samples'],
    shown.map((one) => [
      one.pair,
      one.metric,
      digits(one.first.mean),
      digits(one.other.mean),
      signed(one.difference),
      one.low === null || one.high === null ? null : `${signed(one.low)} to ${signed(one.high)}`,
      one.p === null ? null : digits(one.p),
      one.method,
      one.method === 'paired' ? one.first.tasks : `${one.first.tasks}, ${one.other.tasks}`,
      `${one.first.samples}, ${one.other.samples}`,
    ]),
  );
  process.stdout.write('\n');
  for (const [at, { solved, metrics }] of pairs.entries()) {
    const pair = `${letterOf(at + 1)} - A`;
    const reward = metrics.find((one) => one.metric === (only?.[0] ?? 'reward_mean'));
    if (reward) process.stdout.write(`${pair}: ${reward.power_words}\n`);
    if (solved) process.stdout.write(`${pair}: ${solved.gained} tasks gained, ${solved.lost} lost (McNemar p ${digits(solved.p)}).\n`);
  }
  for (const { condition, run, value, met } of outcomes) {
    const word = met === null ? 'unknown, the runs have no such figure' : met ? 'met' : 'not met';
    process.stdout.write(`${letters.get(run)!} - A: ${printable(condition)} is ${word}${value === null ? '' : ` (${signed(value)})`}\n`);
  }
}
