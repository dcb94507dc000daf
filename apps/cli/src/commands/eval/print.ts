import { formatReward } from '@palestra/kit/reward-text';
import type { ComparedRuns } from '@palestra/protocol';
import { printable, printTable } from '../../output.ts';
import type { Outcome } from '../compare-conditions.ts';
import { outcomeText, printComparison } from '../compare.ts';
import type { Figure, Figures, Results } from './results.ts';

/** The result of an evaluation, as programs read it. */
export interface Evaluation extends Results {
  run: string;
  /** Page of the run. */
  url: string;
  environment: string;
  version: number | null;
  variant: string | null;
  split: string;
  policy: string;
  /** Episodes per task. */
  samples: number;
  conditions: Outcome[];
  /** With the earlier run of `--compare`. */
  comparison: ComparedRuns | null;
}

export function printEvaluation(evaluation: Evaluation): void {
  const { run, url, environment, version, variant, split, policy, samples, levels, conditions, comparison } = evaluation;
  const where = `${environment}${version === null ? '' : `@${version}`}${variant === null ? '' : `, variant ${variant}`}, split ${split}`;
  process.stdout.write(
    `${printable(`${policy} on ${where}: ${counted(evaluation.tasks, 'task')}, ${counted(samples, 'episode')} of each`)}\n\n`,
  );
  printTable(
    ['figure', 'value', '95 % interval'],
    [
      ['reward mean', ...cellsOf(evaluation.reward_mean)],
      ['solved', ...cellsOf(evaluation.success)],
      ...evaluation.pass.map(({ k, ...figure }) => [`pass@${k}`, ...cellsOf(figure)]),
    ],
  );
  process.stdout.write('\n');
  if (levels.length > 0) {
    printTable(
      ['level', 'tasks', 'episodes', 'reward mean', '95 % interval', 'solved', '95 % interval'],
      levels.map((level) => [level.level, level.tasks, level.episodes, ...cellsOf(level.reward_mean), ...cellsOf(level.success)]),
    );
    process.stdout.write('\n');
  }
  for (const line of countLines(evaluation)) process.stdout.write(`${line}\n`);
  process.stdout.write(`${printable(`run ${run}: ${url}`)}\n`);
  if (comparison !== null) {
    process.stdout.write('\n');
    printComparison(comparison, []);
  }
  for (const { condition, value, met } of conditions)
    process.stdout.write(`${outcomeText(condition, met)}${value === null ? '' : ` (${formatReward(value)})`}\n`);
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

const cellsOf = ({ value, low, high }: Figure): [string, string | null] => [
  formatReward(value),
  low === null || high === null ? null : `${formatReward(low)} to ${formatReward(high)}`,
];

function countLines({ episodes, scored, stops, turns, calls, refused_calls, tokens, cost, failures }: Results & Figures): string[] {
  const ended = Object.entries(stops).map(([stop, count]) => `${stop} ${count}`);
  const lines = [`ended: ${ended.join(', ')}`, `turns ${turns}, calls ${calls}, refused calls ${refused_calls}`];
  if (tokens !== null)
    lines.push(`tokens: prompt ${tokens.prompt}, output ${tokens.output}${cost === null ? '' : `; cost ${cost.toFixed(4)}`}`);
  if (scored < episodes)
    lines.push(
      `${episodes - scored} of ${episodes} episodes have no score and are in no figure: infrastructure ${failures.infrastructure}, environment ${failures.environment}`,
    );
  return lines;
}
