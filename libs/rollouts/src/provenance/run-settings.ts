import type { RolloutSource } from '@palestra/protocol';

/** How a trainer reduces the rewards of a rollout's steps to one. */
export type RewardReduce = 'sum' | 'last' | 'max' | 'mean' | 'min';

/** What the owner of a run says about it; every setting overrides what would be found out. */
export interface RunSettings {
  /** RE2 syntax, at most 200 characters, matched anywhere in `rolloutName`; named groups `task`, `step`, `sample`. */
  nameRegex?: string | null;
  /** Samples per prompt. */
  n?: number | null;
  /** Prompts per training step. */
  batchSize?: number | null;
  maxTurns?: number | null;
  rewardReduce?: RewardReduce | null;
  /** Added to the rewards of a rollout that did not end by itself; null = nothing is added. */
  nonterminalReward?: number | null;
  minReward?: number | null;
  maxReward?: number | null;
  /** Success is a reward of at least this; for the metrics, not for normalising. */
  successThreshold?: number | null;
  source?: RolloutSource | null;
}
