import type { RolloutSource, StopReason, UnscoredFailure } from '@palestra/protocol';
import type { RunSettings } from '../provenance/run-settings.ts';

/** The inputs of the trained reward; a `NormalisedRollout` has them all. */
export interface TrainedRewardInput {
  source: RolloutSource;
  stop: StopReason;
  failureClass: UnscoredFailure | null;
  rewardSteps: number;
  rewardSum: number | null;
  rewardMax: number | null;
  rewardMin: number | null;
  rewardFinal: number | null;
}

/**
 * The reward that slime, miles and tinker train on and do not upload (docs/reference/metrics.md#trained-reward). null until the owner has
 * set all four settings (`nonterminalReward: null` is a setting: nothing is added), and for a rollout that failed without fault of its
 * policy.
 */
export function trainedReward(input: TrainedRewardInput, settings: RunSettings): number | null {
  const { rewardReduce, nonterminalReward, minReward, maxReward } = settings;
  if (typeof rewardReduce !== 'string' || nonterminalReward === undefined) return null;
  if (typeof minReward !== 'number' || typeof maxReward !== 'number') return null;
  if (input.failureClass !== null) return null;
  const added = input.stop !== 'finished' && nonterminalReward !== null ? [nonterminalReward] : [];
  if (input.rewardSteps + added.length === 0) return input.source === 'slime/miles' ? 0 : null;
  return Math.min(Math.max(reduce(input, added, rewardReduce), minReward), maxReward);
}

function reduce(input: TrainedRewardInput, added: number[], by: NonNullable<RunSettings['rewardReduce']>): number {
  const listOf = (value: number | null) => (value === null ? [] : [value]);
  const sum = [...listOf(input.rewardSum), ...added].reduce((a, b) => a + b, 0);
  switch (by) {
    case 'sum':
      return sum;
    case 'mean':
      return sum / (input.rewardSteps + added.length);
    case 'max':
      return Math.max(...listOf(input.rewardMax), ...added);
    case 'min':
      return Math.min(...listOf(input.rewardMin), ...added);
    case 'last':
      return added[0] ?? input.rewardFinal ?? 0;
  }
}
