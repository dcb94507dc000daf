import type { ColumnSums } from './columns.ts';
import { type Figure, figure } from './facts.ts';
import { passAtKFigure, passHatKFigure, promptWeightedMean, solvedFigure, zeroVarianceFigure } from './group-stats.ts';
import { type Interval, studentInterval } from './intervals.ts';
import { powersOfTwo } from './pass.ts';
import { ascending, mean, percentileOfSorted, std } from './summary.ts';

const PERCENTILES = [10, 25, 50, 75, 90];

/**
 * The canonical figures of rewards, groups and stops by key, without those that draw a bootstrap: bit for bit what the canonical lens says of the same
 * rollouts under the denominator `scored`.
 */
export function canonicalOfSums(sums: ColumnSums): Map<string, Figure> {
  const figures = new Map([...rewardFigures(sums), ...groupFigures(sums)]);
  const { stopsKnown, truncated, rollouts } = sums;
  figures.set('truncated', figure(stopsKnown === 0 ? null : truncated / stopsKnown, stopsKnown, rollouts));
  return figures;
}

function* rewardFigures({ rewards, rollouts: of, succeeded, effective }: ColumnSums): Generator<[string, Figure]> {
  const scored = rewards.length;
  const ofRewards = (value: number | null) => figure(value, scored, of);
  yield ['reward_mean', ofRewards(mean(rewards))];
  yield ['reward_std', ofRewards(std(rewards, 1))];
  yield ['reward_min', ofRewards(rewards[0] ?? null)];
  yield ['reward_max', ofRewards(rewards.at(-1) ?? null)];
  for (const p of PERCENTILES) yield [`reward_p${p}`, ofRewards(percentileOfSorted(rewards, p / 100))];
  yield ['success', ofRewards(scored === 0 ? null : succeeded / scored)];
  yield ['scored', figure(scored, of, of)];
  yield ['effective', figure(effective, of, of)];
}

function* groupFigures({ rollouts, groups: byNumber }: ColumnSums): Generator<[string, Figure]> {
  const groups = byNumber.filter((stats) => stats !== null);
  const grouped = groups.reduce((total, { n }) => total + n, 0);
  const note = grouped < rollouts ? `${rollouts - grouped} of ${rollouts} rollouts have no group` : null;
  const noted = ({ value, denominator, of }: Figure) => figure(value, denominator, of, note);
  const largest = groups.reduce((most, { n }) => Math.max(most, n), 0);
  for (const k of powersOfTwo(largest)) {
    yield [`pass@${k}`, noted(passAtKFigure(groups, k))];
    yield [`pass^${k}`, noted(passHatKFigure(groups, k))];
  }
  yield ['avg@n', noted(promptWeightedMean(groups))];
  const means = groups.filter(({ scored }) => scored > 0).map(({ sum, scored }) => sum / scored);
  const interval = studentInterval(ascending(means));
  const end = (of: keyof Interval) =>
    figure(interval?.[of] ?? null, means.length, groups.length, interval === null ? 'needs two groups' : null);
  yield ['avg@n_ci_low', end('low')];
  yield ['avg@n_ci_high', end('high')];
  yield ['groups', figure(groups.length, groups.length, groups.length)];
  for (const which of ['none', 'some', 'all'] as const) yield [`solved_${which}`, noted(solvedFigure(groups, which))];
  yield ['zero_variance', noted(zeroVarianceFigure(groups))];
  for (const kind of ['all-fail', 'all-pass', 'equal-other'] as const)
    yield [`zero_variance_${kind.replace('-', '_')}`, noted(zeroVarianceFigure(groups, kind))];
}
