import type { Denominator, KnownPhase, StopReason, UnscoredFailure } from '@palestra/protocol';

/** What every metric reads: one narrow row a rollout. A number that is not finite counts as null. */
export interface RolloutFacts {
  id: string;
  /** Rollouts of one task at one step share it; null = not known, and out of every group metric. */
  group: string | null;
  /** Canonical total (dashboard.md 14.2); null = unscored, which is not 0. */
  reward: number | null;
  /** Sum of the positive step rewards; null = not known. */
  rewardPositive: number | null;
  /** Reward of the last step, 0 when that step carried none; null = the last step is not known. */
  lastReward: number | null;
  /** How many steps carried a reward. */
  rewardSteps: number;
  /** The total after the trainer's own post-processing (2.3), where the run's four settings are known. */
  trainedReward?: number | null;
  stop: StopReason | null;
  turns: number | null;
  /** Turns of the model, and of tools or users between them: verl's count needs both. */
  assistantTurns: number | null;
  toolTurns: number | null;
  /** Tool results, and those that failed. */
  calls: number;
  callErrors: number;
  tokensOut: number | null;
  tokensTool: number | null;
  failure: UnscoredFailure | null;
  environment: string | null;
  phase: KnownPhase | null;
}

/** `r >= threshold`, or `r > threshold` when `strict`. */
export interface SuccessRule {
  threshold: number;
  strict: boolean;
}

export interface MetricContext {
  /**
   * One rule for all rows, or one an environment. Environments without one get the rule of decision 14.3 from the rows at hand, so pass
   * the run's rule whenever the rows are less than the run.
   */
  success?: SuccessRule | ReadonlyMap<string | null, SuccessRule>;
  /** Expected size of a group; null = not known. */
  n?: number | null;
  /** Which rollouts a canonical figure counts; default `scored`. Trainers' lenses have their own rule and ignore it. */
  denominator?: Denominator;
  /** Of canonical standard deviations; default 1. */
  ddof?: 0 | 1;
  /** Of the group bootstrap; default 42. verl's is always 42, as in verl. */
  bootstrapSeed?: number;
  /** Default 1000. */
  bootstrapDraws?: number;
}

export interface Figure {
  /** null when there was nothing to compute it from. */
  value: number | null;
  /** How many rollouts, groups or results went in ... */
  denominator: number;
  /** ... of how many that were there. */
  of: number;
  note?: string;
}

/** The upload does not hold what the metric needs. There is never an approximation under a trainer's name. */
export interface Unavailable {
  unavailable: 'not in the upload';
  note?: string;
}

export type MetricAnswer = Figure | Unavailable;

export const NOT_IN_UPLOAD = 'not in the upload';

export function unavailable(note?: string): Unavailable {
  return note === undefined ? { unavailable: NOT_IN_UPLOAD } : { unavailable: NOT_IN_UPLOAD, note };
}

export function isFigure(answer: MetricAnswer): answer is Figure {
  return 'value' in answer;
}

export function figure(value: number | null, denominator: number, of: number, note?: string | null): Figure {
  const finite = value !== null && Number.isFinite(value) ? value : null;
  return note ? { value: finite, denominator, of, note } : { value: finite, denominator, of };
}

/** The reward as a number; null for unscored and for what is not finite. */
export function scoreOf(row: Pick<RolloutFacts, 'reward'>): number | null {
  return row.reward !== null && Number.isFinite(row.reward) ? row.reward : null;
}
