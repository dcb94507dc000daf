import { formatReward } from '@palestra/kit/reward-text';
import type { EnvironmentReport } from '@palestra/protocol';

const MARKS = { passed: 'ok  ', failed: 'FAIL', skipped: 'skip' };

/** The report of an environment as text. */
export function environmentReportLines(name: string, { checks, players }: EnvironmentReport): string[] {
  const failed = checks.filter(({ status }) => status === 'failed').length;
  const skipped = checks.filter(({ status }) => status === 'skipped').length;
  const summary = [`${checks.length - failed - skipped} passed`, `${failed} failed`, ...(skipped > 0 ? [`${skipped} skipped`] : [])];
  return [
    `${name}: ${summary.join(', ')}`,
    ...checks.flatMap(({ id, title, status, detail }) => [
      `  ${MARKS[status]}  ${title} (${id})`,
      ...(status === 'passed' ? [] : [`        ${detail}`]),
    ]),
    ...players.map(
      ({ name: player, split, tasks, mean, low, high, solved }) =>
        `  ${player}: mean reward ${formatReward(mean)} [${formatReward(low)}, ${formatReward(high)}], ${(solved * 100).toFixed(0)} % solved, ${tasks} tasks of ${split}`,
    ),
  ];
}

export const isPassed = ({ checks }: EnvironmentReport): boolean => checks.every(({ status }) => status !== 'failed');
