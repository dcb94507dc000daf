import type { RolloutSource, StopReason, UnscoredFailure } from '@palestra/protocol';
import type { RunSettings } from '../provenance/run-settings.ts';

/** What the trained reward of a rollout follows from; a `NormalisedRollout` has it all. */
export interface TrainedRewardFacts {
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
 * The reward that slime, miles and tinker train on, none of which is uploaded (dashboard.md 2.3):
 * clamp(reduce(rewards + [nonterminalReward unless the environment ended the rollout]), minReward, maxReward).
 * Without any reward slime and miles train on 0, tinker drops the rollout (null). Null also until the owner has given all four
 * settings (`nonterminalReward: null` is given: nothing is added), and for a rollout that failed by no fault of its policy.
 */
export function trainedReward(facts: TrainedRewardFacts, settings: RunSettings): number | null {
  const { rewardReduce, nonterminalReward, minReward, maxReward } = settings;
  if (typeof rewardReduce !== 'string' || nonterminalReward === undefined) return null;
  if (typeof minReward !== 'number' || typeof maxReward !== 'number') return null;
  if (facts.failureClass !== null) return null;
  const added = facts.stop !== 'finished' && nonterminalReward !== null ? [nonterminalReward] : [];
  if (facts.rewardSteps + added.length === 0) return facts.source === 'slime/miles' ? 0 : null;
  return Math.min(Math.max(reduce(facts, added, rewardReduce), minReward), maxReward);
}

function reduce(facts: TrainedRewardFacts, added: number[], by: NonNullable<RunSettings['rewardReduce']>): number {
  const given = (value: number | null) => (value === null ? [] : [value]);
  const sum = [...given(facts.rewardSum), ...added].reduce((a, b) => a + b, 0);
  switch (by) {
    case 'sum':
      return sum;
    case 'mean':
      return sum / (facts.rewardSteps + added.length);
    case 'max':
      return Math.max(...given(facts.rewardMax), ...added);
    case 'min':
      return Math.min(...given(facts.rewardMin), ...added);
    case 'last':
      return added[0] ?? facts.rewardFinal ?? 0;
  }
}
