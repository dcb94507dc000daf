import { PalestraApiError } from '@palestra/client';
import type { ComparedRuns, CompareMetric } from '@palestra/protocol';
import { formatReward } from '@palestra/kit/reward-text';
import { aboutRun } from '../named-run.ts';
import { printable, type Printed, printOne, printTable } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';
import { type ComparedOutcome, type Condition, exitCodeFor, outcomesOf } from './compare-conditions.ts';

interface CompareOptions extends Printed {
  steps: string;
  metric?: CompareMetric[];
  env?: string;
  phase?: string;
  den?: string;
  failIf?: Condition[];
}

const MAX_RUNS = 4;

export async function compareRuns(runs: string[], { failIf = [], metric, output, ...query }: CompareOptions): Promise<void> {
  if (runs.length < 2 || runs.length > MAX_RUNS)
    throw new UsageError(`Expected two to four runs, not ${runs.length}. Usage: palestra compare RUN RUN`);
  const answer = await withClient((client) =>
    client.runs.compare(runs, query).catch(async (error: unknown) => {
      // It does not say which one is unknown.
      if (error instanceof PalestraApiError && error.code === 'run_not_found')
        for (const run of runs) await aboutRun(run, client.runs.get(run));
      throw error;
    }),
  );
  const outcomes = outcomesOf(failIf, answer);
  await printOne({ output }, { ...answer, conditions: outcomes }, () => printComparison(answer, outcomes, metric));
  process.exitCode = exitCodeFor(outcomes);
}

const digits = (value: number): string => formatReward(value);
const signed = (value: number): string => formatReward(value, { signed: true });
const letterOf = (at: number): string => 'ABCD'[at]!;

export const outcomeText = (condition: string, met: boolean | null): string =>
  `${printable(condition)} is ${met === null ? 'unknown: there is no such figure' : met ? 'met' : 'not met'}`;

export function printComparison(
  { runs, steps, pairs, den, phase, cut }: ComparedRuns,
  outcomes: readonly ComparedOutcome[],
  only?: readonly CompareMetric[],
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
    process.stdout.write(`${letters.get(run)!} - A: ${outcomeText(condition, met)}${value === null ? '' : ` (${signed(value)})`}\n`);
  }
}
