import { type MetricAnswer, unavailable } from '../figure.ts';
import type { MetricTemplate } from '../lens.ts';
import { mostCommonSize } from '../pass.ts';
import { countOf, placesByGroup, type RolloutColumns, scoreOf, takeRollouts } from '../rollout-columns.ts';
import { max } from '../summary.ts';

/** Metrics that a trainer prints and that need more than an upload contains. */
export function notInUpload(formula: string, keys: readonly string[]): MetricTemplate[] {
  return keys.map((key) => ({ key, label: key, formula, needs: [], compute: (): MetricAnswer => unavailable() }));
}

/** The places of the rollouts of each group. */
export const groupsOf = (columns: RolloutColumns): number[][] => [...placesByGroup(columns).values()];

export function largestGroup(columns: RolloutColumns): number {
  return max(groupsOf(columns).map((group) => group.length)) ?? 0;
}

/** The most common number of rollouts in a group, the larger of equally common ones; 0 without groups. */
export function commonGroupSize(columns: RolloutColumns): number {
  return mostCommonSize(groupsOf(columns).map((group) => [group.length, 1]));
}

export function ungroupedNote({ group }: RolloutColumns): string | null {
  const ungrouped = group.filter((key) => key === null).length;
  return ungrouped === 0 ? null : `${ungrouped} of ${group.length} rollouts have no group`;
}

/** For trainers without unscored rollouts: the rewards at these places, null as 0. */
export const rewardsAt = ({ reward }: RolloutColumns, places: readonly number[]): number[] => places.map((at) => scoreOf(reward[at]) ?? 0);

/** The rewards of each group, null as 0. */
export const groupRewards = (columns: RolloutColumns): number[][] => groupsOf(columns).map((places) => rewardsAt(columns, places));

/** All rewards, null as 0. The note says how many of the zeros are nulls. */
export function nullAsZero(columns: RolloutColumns): { rewards: number[]; note: string | null } {
  const nulls = columns.reward.filter((reward) => scoreOf(reward) === null).length;
  const note = nulls === 0 ? null : `null as 0 (${nulls} of ${countOf(columns)})`;
  return { rewards: columns.reward.map((reward) => scoreOf(reward) ?? 0), note };
}

export function joinNotes(...notes: (string | null | undefined)[]): string | null {
  return notes.filter((note) => note).join('; ') || null;
}

/** The rollouts at `places`, or the same columns when these are all. */
export const subset = (columns: RolloutColumns, places: readonly number[]): RolloutColumns =>
  places.length === countOf(columns) ? columns : takeRollouts(columns, places);

/** slime, miles and tinker train on a reward that needs four settings of the run (docs/reference/metrics.md#trained-reward); else it is the plain sum. */
export function withTrainedRewards(columns: RolloutColumns): { columns: RolloutColumns; note: string | null } {
  return columns.trainedReward
    ? { columns: { ...columns, reward: columns.trainedReward }, note: null }
    : { columns, note: 'environment reward, before trainer post-processing' };
}
