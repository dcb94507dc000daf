import type { RolloutSource } from '@palestra/protocol';

/** How a trainer reduces the rewards of the steps of a rollout to one. */
export type RewardReduce = 'sum' | 'last' | 'max' | 'mean' | 'min';

/** Settings of a run by its owner. Each setting overrides the inferred value. */
export interface RunSettings {
  /** RE2 syntax, at most 200 characters, matched anywhere in `rolloutName`; named groups `task`, `step`, `sample`. */
  nameRegex?: string | null;
  /** Samples per prompt. */
  n?: number | null;
  /** Prompts per training step. */
  batchSize?: number | null;
  maxTurns?: number | null;
  rewardReduce?: RewardReduce | null;
  /** Added to the rewards of a rollout that did not end by itself; null: nothing is added. */
  nonterminalReward?: number | null;
  minReward?: number | null;
  maxReward?: number | null;
  /** A reward of at least this is a success. Metrics use it; the normaliser does not. */
  successThreshold?: number | null;
  source?: RolloutSource | null;
}
