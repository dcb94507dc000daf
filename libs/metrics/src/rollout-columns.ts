import type { Denominator, Phase, StopReason, UnscoredFailure } from '@palestra/protocol';

/** What metrics read of one rollout. A number that is not finite counts as null. */
export interface RolloutFigures {
  /** Rollouts of one task at one step share it; null = not known, in no group metric. */
  group: string | null;
  /** Canonical reward, or what an interrupted rollout earned until then (docs/reference/metrics.md#canonical-reward); null = unscored, which is not 0. */
  reward: number | null;
  /** Sum of the positive step rewards; null = not known. */
  rewardPositive: number | null;
  /** Reward of the last step, 0 when that step has none; null = the last step is not known. */
  lastReward: number | null;
  /** How many steps have a reward. */
  rewardSteps: number;
  /** The reward after the trainer's own post-processing, where the run's four settings are known (docs/reference/metrics.md#trained-reward). */
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
}

/** The same entries by column: entry `i` of every column belongs to item `i`. */
export type Columns<Item> = { readonly [Name in keyof Item]: readonly Item[Name][] };

/** The input of every metric and lens, in the order of arrival, on which verl's draws depend. `trainedReward` is missing unless all rollouts have it. */
export interface RolloutColumns extends Columns<Omit<RolloutFigures, 'trainedReward'>> {
  readonly trainedReward?: readonly (number | null)[];
}

const NAMES = [
  'group',
  'reward',
  'rewardPositive',
  'lastReward',
  'rewardSteps',
  'stop',
  'turns',
  'assistantTurns',
  'toolTurns',
  'calls',
  'callErrors',
  'tokensOut',
  'tokensTool',
  'failure',
  'environment',
] as const satisfies (keyof RolloutFigures)[];

export function columnsOf(rollouts: readonly RolloutFigures[]): RolloutColumns {
  const columns = Object.fromEntries(NAMES.map((name) => [name, rollouts.map((rollout) => rollout[name])]));
  const trained = rollouts.flatMap(({ trainedReward }) => (trainedReward === undefined ? [] : [trainedReward]));
  if (trained.length === rollouts.length) columns['trainedReward'] = trained;
  return columns as unknown as RolloutColumns;
}

export const countOf = (columns: Pick<RolloutColumns, 'reward'>): number => columns.reward.length;

/** The rollouts at these places, in this order. */
export function takeRollouts<Taken extends RolloutColumns>(columns: Taken, places: readonly number[]): Taken {
  const taken = Object.entries(columns).map(([name, column]: [string, readonly unknown[]]) => [name, places.map((at) => column[at])]);
  return Object.fromEntries(taken) as Taken;
}

/** The places of the rollouts for which `test` holds. */
export function placesWhere(columns: RolloutColumns, test: (at: number) => boolean): number[] {
  const places: number[] = [];
  for (let at = 0; at < countOf(columns); at += 1) if (test(at)) places.push(at);
  return places;
}

/** The places of the rollouts of each group, in order of first appearance; rollouts without a group are in none. */
export function placesByGroup({ group }: Pick<RolloutColumns, 'group'>): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (let at = 0; at < group.length; at += 1) {
    const key = group[at] ?? null;
    if (key === null) continue;
    const places = groups.get(key);
    if (places === undefined) groups.set(key, [at]);
    else places.push(at);
  }
  return groups;
}

/** The reward as a number; null for unscored and for what is not finite. */
export function scoreOf(reward: number | null | undefined): number | null {
  return reward !== null && reward !== undefined && Number.isFinite(reward) ? reward : null;
}

/** The reward of the last step, 0 for a rollout without any reward; null where the last step is not known. */
export function lastRewardOf({ reward, lastReward }: Pick<RolloutFigures, 'reward' | 'lastReward'>): number | null {
  return lastReward ?? (scoreOf(reward) === null ? 0 : null);
}

/** `r >= threshold`, or `r > threshold` when `strict`. */
export interface SuccessRule {
  threshold: number;
  strict: boolean;
}

export interface MetricContext {
  /**
   * One rule for all rollouts, or one per environment. The rule of an environment that has none is inferred from the given rollouts
   * (docs/reference/metrics.md#success), so pass the run's rule whenever these are less than the run.
   */
  success?: SuccessRule | ReadonlyMap<string | null, SuccessRule>;
  /** Expected size of a group; null = not known. */
  n?: number | null;
  /** The phase of all these rollouts. Trainers name figures of training and of evaluation differently; without a phase both names are given. */
  phase?: Phase;
  /** The names of the environments, where the column has ids. */
  environments?: ReadonlyMap<string | null, string | null>;
  /** Which rollouts a canonical figure counts; default `effective`. Trainers' lenses have their own rule and ignore it. */
  denominator?: Denominator;
  /** Of canonical standard deviations; default 1. */
  ddof?: 0 | 1;
  /** Of the group bootstrap; default 42. verl's is always 42, as in verl. */
  bootstrapSeed?: number;
  /** Default 1000. */
  bootstrapDraws?: number;
}
