import type { EnvironmentReport } from '@palestra/protocol';
import { plural } from '../format/number.ts';

type Check = EnvironmentReport['checks'][number];

const order: Record<Check['status'], number> = { failed: 0, passed: 1, skipped: 2 };

/** Failed checks first; otherwise in the order of the report. */
export const sortedChecks = ({ checks }: EnvironmentReport): Check[] => checks.toSorted((a, b) => order[a.status] - order[b.status]);

/** `1 of 12 checks failed`, `12 checks passed, 2 skipped`. */
export function summaryOf({ checks }: EnvironmentReport): string {
  const count = (status: Check['status']) => checks.filter((check) => check.status === status).length;
  const skipped = count('skipped') === 0 ? '' : `, ${count('skipped')} skipped`;
  if (count('failed') > 0) return `${count('failed')} of ${plural(checks.length, 'check')} failed${skipped}`;
  return `${plural(count('passed'), 'check')} passed${skipped}`;
}

/** The range of rewards that the players are drawn in: the declared one, else from the lowest to the highest value, with [0, 1] at least. */
export function reportScale({ reward_range: range, players }: EnvironmentReport) {
  const ends = players.flatMap(({ low, high }) => [low, high]);
  const [low, high] = range ?? [Math.min(0, ...ends), Math.max(1, ...ends)];
  /** In percent of the width. */
  const position = (reward: number): number => (high > low ? Math.min(100, Math.max(0, (100 * (reward - low)) / (high - low))) : 0);
  return { low, high, position };
}
