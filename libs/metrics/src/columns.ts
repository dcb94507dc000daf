import { emptyGroup, type GroupStats } from './group-stats.ts';
import { ascending } from './summary.ts';

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

export type RewardCount = [reward: number, scored: number, effective: number];

/** What canonical figures of some rollouts are made of (column-figures.ts). */
export interface ColumnSums {
  rollouts: number;
  /** Ascending. */
  rewards: number[];
  /** How many rollouts, and effective ones, have each reward, ascending; null when these are more than fifty different ones. */
  rewardCounts: RewardCount[] | null;
  succeeded: number;
  /** With a reward, and not failed. */
  effective: number;
  stopsKnown: number;
  truncated: number;
  /** By number of the group; null for groups that do not occur. */
  groups: (GroupStats | null)[];
}

export function sumColumns(columns: RolloutColumns): ColumnSums {
  const rewardCounts = countRewards(columns);
  return {
    rollouts: columns.reward.length,
    rewards: rewardCounts === null ? ascending(scoredRewards(columns.reward)) : repeated(rewardCounts),
    rewardCounts,
    ...countFlags(columns),
    groups: groupStatsOfColumns(columns),
  };
}

/**
 * Sums of disjoint rollouts, whose groups have the same numbers, together: bit for bit `sumColumns` of all of them. null where a group is in several of
 * them: its rewards must be summed anew, in ascending order.
 */
export function mergeColumnSums(parts: readonly ColumnSums[]): ColumnSums | null {
  const groups = disjointGroups(parts);
  if (groups === null) return null;
  const rewardCounts = mergeCounts(parts);
  const total = (of: 'rollouts' | 'succeeded' | 'effective' | 'stopsKnown' | 'truncated') => parts.reduce((sum, part) => sum + part[of], 0);
  return {
    rollouts: total('rollouts'),
    rewards: rewardCounts === null ? ascending(parts.flatMap(({ rewards }) => rewards)) : repeated(rewardCounts),
    rewardCounts,
    succeeded: total('succeeded'),
    effective: total('effective'),
    stopsKnown: total('stopsKnown'),
    truncated: total('truncated'),
    groups,
  };
}

/** Rewards are often a few values many times: to count them takes half of what sorting does, or less. Different rewards that some rollouts may have for each to be counted. */
const MAX_COUNTED_REWARDS = 50;
const distinct = new Float64Array(MAX_COUNTED_REWARDS);
const scored = new Uint32Array(MAX_COUNTED_REWARDS);
const effective = new Uint32Array(MAX_COUNTED_REWARDS);

function countRewards({ reward, flags }: RolloutColumns): RewardCount[] | null {
  let different = 0;
  for (let at = 0; at < reward.length; at += 1) {
    const value = positiveZero(reward[at]!);
    if (Number.isNaN(value)) continue;
    let place = 0;
    while (place < different && distinct[place] !== value) place += 1;
    if (place === different) {
      if (different === MAX_COUNTED_REWARDS) return null;
      distinct[place] = value;
      scored[place] = 0;
      effective[place] = 0;
      different += 1;
    }
    scored[place]! += 1;
    if ((flags[at]! & FAILED) === 0) effective[place]! += 1;
  }
  return Array.from({ length: different }, (_, place): RewardCount => [distinct[place]!, scored[place]!, effective[place]!]).sort(byReward);
}

/** Zero has one sign here: it is stored as JSON. */
const positiveZero = (value: number): number => value + 0;
const byReward = ([one]: RewardCount, [other]: RewardCount) => one - other;

function mergeCounts(parts: readonly ColumnSums[]): RewardCount[] | null {
  const merged = new Map<number, RewardCount>();
  for (const { rewardCounts } of parts) {
    if (rewardCounts === null) return null;
    for (const [reward, ofReward, ofEffective] of rewardCounts) {
      const own = merged.get(reward);
      if (own === undefined) merged.set(reward, [reward, ofReward, ofEffective]);
      else {
        own[1] += ofReward;
        own[2] += ofEffective;
      }
    }
  }
  return merged.size > MAX_COUNTED_REWARDS ? null : [...merged.values()].sort(byReward);
}

function repeated(counts: readonly RewardCount[]): number[] {
  const rewards: number[] = [];
  for (const [reward, times] of counts) for (let time = 0; time < times; time += 1) rewards.push(reward);
  return rewards;
}

function scoredRewards(reward: Float64Array): number[] {
  const rewards: number[] = [];
  for (const value of reward) if (!Number.isNaN(value)) rewards.push(positiveZero(value));
  return rewards;
}

/** Beside the bits of a rollout. */
const UNSCORED = 16;

function countFlags({ reward, flags }: RolloutColumns): Pick<ColumnSums, 'succeeded' | 'effective' | 'stopsKnown' | 'truncated'> {
  const kinds = new Uint32Array(2 * UNSCORED);
  for (let at = 0; at < flags.length; at += 1) kinds[flags[at]! | (Number.isNaN(reward[at]!) ? UNSCORED : 0)]! += 1;
  const countOf = (mask: number, bits: number) => kinds.reduce((sum, count, kind) => ((kind & mask) === bits ? sum + count : sum), 0);
  return {
    succeeded: countOf(SUCCEEDS, SUCCEEDS),
    effective: countOf(FAILED | UNSCORED, 0),
    stopsKnown: countOf(STOP_KNOWN, STOP_KNOWN),
    truncated: countOf(TRUNCATED, TRUNCATED),
  };
}

function disjointGroups(parts: readonly ColumnSums[]): (GroupStats | null)[] | null {
  const [first, ...others] = parts;
  const groups = [...first!.groups];
  for (const other of others) {
    for (let of = 0; of < groups.length; of += 1) {
      const own = other.groups[of]!;
      if (own === null) continue;
      if (groups[of] !== null) return null;
      groups[of] = own;
    }
  }
  return groups;
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
  stats.forEach((own, of) => own !== null && own.scored > 0 && sumAscending(own, values, ends[of]! - own.scored, ends[of]!));
  return stats;
}

/** Groups are small: up to this size inserting is several times faster than `sort`. */
const SMALL = 64;

/** Rewards of a group from `from` up to `to`, which are put in order. */
function sumAscending(stats: GroupStats, values: Float64Array, from: number, to: number): void {
  if (to - from > SMALL) values.subarray(from, to).sort();
  else insertionSort(values, from, to);
  for (let at = from; at < to; at += 1) {
    const reward = values[at]!;
    stats.sum += reward;
    stats.sumsq += reward * reward;
  }
  stats.min = values[from]!;
  stats.max = values[to - 1]!;
}

function insertionSort(values: Float64Array, from: number, to: number): void {
  for (let at = from + 1; at < to; at += 1) {
    const value = values[at]!;
    let place = at;
    for (; place > from && values[place - 1]! > value; place -= 1) values[place] = values[place - 1]!;
    values[place] = value;
  }
}
