import { type Figure, figure } from './facts.ts';
import {
  emptyGroup,
  type GroupStats,
  passAtKFigure,
  passHatKFigure,
  promptWeightedMean,
  solvedFigure,
  zeroVarianceFigure,
} from './group-stats.ts';
import { type Interval, studentInterval } from './intervals.ts';
import { powersOfTwo } from './pass.ts';
import { ascending, mean, percentileOfSorted, std } from './summary.ts';

/** What a rollout is, in bits. `SUCCEEDS` only with a reward. */
export const SUCCEEDS = 1;
export const FAILED = 2;
export const STOP_KNOWN = 4;
export const TRUNCATED = 8;

/** Rollouts by column, one entry each in any order: what thousands of them are summed from without an object for each. */
export interface RolloutColumns {
  /** NaN = unscored. */
  reward: Float64Array;
  /** A number from 0 to `groups` - 1 a group, not all of which need to occur; -1 = none. */
  group: Int32Array;
  groups: number;
  flags: Uint8Array;
}

export interface ColumnFigures {
  /** By key. Bit for bit what the canonical lens says of the same rollouts under the denominator `scored`. */
  figures: Map<string, Figure>;
  /** By number of the group; null for groups that do not occur. */
  groups: (GroupStats | null)[];
  /** Ascending. */
  rewards: number[];
}

const PERCENTILES = [10, 25, 50, 75, 90];

/** The canonical figures of rewards, groups and stops, without those that draw a bootstrap. */
export function canonicalOfColumns(columns: RolloutColumns): ColumnFigures {
  const rewards = scoredRewards(columns.reward);
  const groups = groupStatsOfColumns(columns);
  const figures = new Map([...rewardFigures(columns, rewards), ...groupFigures(columns, groups)]);
  const [known, truncated] = [countOf(columns.flags, STOP_KNOWN), countOf(columns.flags, TRUNCATED)];
  figures.set('truncated', figure(known === 0 ? null : truncated / known, known, columns.flags.length));
  return { figures, groups, rewards };
}

function scoredRewards(reward: Float64Array): number[] {
  const scored: number[] = [];
  for (const value of reward) if (!Number.isNaN(value)) scored.push(value);
  return ascending(scored);
}

function countOf(flags: Uint8Array, flag: number): number {
  let count = 0;
  for (const value of flags) if ((value & flag) !== 0) count += 1;
  return count;
}

function* rewardFigures({ reward, flags }: RolloutColumns, rewards: readonly number[]): Generator<[string, Figure]> {
  const [scored, of] = [rewards.length, reward.length];
  const ofRewards = (value: number | null) => figure(value, scored, of);
  yield ['reward_mean', ofRewards(mean(rewards))];
  yield ['reward_std', ofRewards(std(rewards, 1))];
  yield ['reward_min', ofRewards(rewards[0] ?? null)];
  yield ['reward_max', ofRewards(rewards.at(-1) ?? null)];
  for (const p of PERCENTILES) yield [`reward_p${p}`, ofRewards(percentileOfSorted(rewards, p / 100))];
  yield ['success', ofRewards(scored === 0 ? null : countOf(flags, SUCCEEDS) / scored)];
  yield ['scored', figure(scored, of, of)];
  let effective = 0;
  for (let at = 0; at < of; at += 1) if ((flags[at]! & FAILED) === 0 && !Number.isNaN(reward[at])) effective += 1;
  yield ['effective', figure(effective, of, of)];
}

function* groupFigures({ group }: RolloutColumns, byNumber: readonly (GroupStats | null)[]): Generator<[string, Figure]> {
  const groups = byNumber.filter((stats) => stats !== null);
  const grouped = groups.reduce((total, { n }) => total + n, 0);
  const note = grouped < group.length ? `${group.length - grouped} of ${group.length} rollouts have no group` : null;
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

/** Rewards of one group lie side by side and are summed in ascending order, as `groupStats` does. */
function groupStatsOfColumns({ reward, group, groups, flags }: RolloutColumns): (GroupStats | null)[] {
  const stats = Array.from({ length: groups }, (): GroupStats | null => null);
  const ends = new Int32Array(groups);
  for (let at = 0; at < group.length; at += 1) {
    const of = group[at]!;
    if (of < 0) continue;
    const own = (stats[of] ??= emptyGroup());
    own.n += 1;
    if (Number.isNaN(reward[at])) continue;
    own.scored += 1;
    if ((flags[at]! & SUCCEEDS) !== 0) own.c += 1;
    ends[of]! += 1;
  }
  let before = 0;
  for (let of = 0; of < groups; of += 1) {
    const size = ends[of]!;
    ends[of] = before;
    before += size;
  }
  const values = new Float64Array(before);
  for (let at = 0; at < group.length; at += 1) {
    const of = group[at]!;
    if (of >= 0 && !Number.isNaN(reward[at])) values[ends[of]!++] = reward[at]!;
  }
  stats.forEach((own, of) => own !== null && own.scored > 0 && sumAscending(own, values.subarray(ends[of]! - own.scored, ends[of])));
  return stats;
}

/** Groups are small: up to this size inserting is several times faster than `sort`. */
const SMALL = 64;

function sumAscending(stats: GroupStats, rewards: Float64Array): void {
  if (rewards.length > SMALL) rewards.sort();
  else insertionSort(rewards);
  for (const reward of rewards) {
    stats.sum += reward;
    stats.sumsq += reward * reward;
  }
  stats.min = rewards[0]!;
  stats.max = rewards.at(-1)!;
}

function insertionSort(values: Float64Array): void {
  for (let at = 1; at < values.length; at += 1) {
    const value = values[at]!;
    let to = at;
    for (; to > 0 && values[to - 1]! > value; to -= 1) values[to] = values[to - 1]!;
    values[to] = value;
  }
}
