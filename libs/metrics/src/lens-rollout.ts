import type { Lens } from '@palestra/protocol';
import { isFailed } from './denominators.ts';
import { lastRewardOf, type RolloutFigures, scoreOf, type SuccessRule } from './rollout-columns.ts';
import { isSuccess } from './success.ts';

/** What a lens reads of one rollout. */
export type LensInput = Pick<RolloutFigures, 'reward' | 'lastReward' | 'trainedReward' | 'assistantTurns' | 'failure' | 'stop'>;

/** One rollout as a trainer counts it. The mean of `reward` over the `counted` rollouts is the mean of the lens. */
export interface LensRollout {
  /** null = the trainer has no number for it. */
  reward: number | null;
  /** Whether it counts as solved; null = the trainer does not decide it per rollout, or its inputs are not known. */
  success: boolean | null;
  /** Whether the trainer's mean contains it; null = its inputs are not known. */
  counted: boolean | null;
}

interface RolloutLens {
  /** The rule in words. */
  rule: string;
  /** `success`: the success rule of its run and environment. */
  of(row: LensInput, success: SuccessRule): LensRollout;
}

/** slime, miles and tinker: the trained reward where the run's four settings are known, else the environment's total; null = 0. */
const trained = (row: LensInput): number => (row.trainedReward !== undefined ? (row.trainedReward ?? 0) : (scoreOf(row.reward) ?? 0));
const TRAINED = 'the total as the run’s settings reduce and clamp it, the plain total where they are not all given; null counts as 0';

/** Agrees with the definitions in lenses/, which name their sources. */
const ROLLOUT_LENSES: Record<Lens, RolloutLens> = {
  canonical: {
    rule: 'the total; unscored and interrupted rollouts have none and are in no mean; solved by the success rule of the run and environment',
    of(row, success) {
      const reward = isFailed(row) ? null : scoreOf(row.reward);
      return { reward, success: reward === null ? null : isSuccess(reward, success), counted: reward !== null };
    },
  },
  skyrl: {
    rule: 'the total, null counts as 0; solved when the reward of the last step is above 0 (last-token pass), whatever the total is; not without any reward; unknown where that step is not known',
    of(row) {
      const [reward, last] = [scoreOf(row.reward) ?? 0, lastRewardOf(row)];
      return { reward, success: last === null ? null : last > 0, counted: true };
    },
  },
  verl: {
    rule: 'the total, null counts as 0; rollouts without a turn of the model are aborted and in no mean; verl calls no single rollout solved',
    of: (row) => ({
      reward: scoreOf(row.reward) ?? 0,
      success: null,
      counted: row.assistantTurns === null ? null : row.assistantTurns > 0,
    }),
  },
  trl: {
    rule: 'the total, unscorable rollouts are left out; TRL calls no single rollout solved',
    of(row) {
      const reward = scoreOf(row.reward);
      return { reward, success: null, counted: reward !== null };
    },
  },
  'prime-rl': {
    rule: 'the total, null counts as 0; counted are effective traces, neither errored nor cancelled; of those solved at exactly 1',
    of(row) {
      const [reward, counted] = [scoreOf(row.reward) ?? 0, !isFailed(row)];
      return { reward, success: counted ? reward === 1 : null, counted };
    },
  },
  slime: {
    rule: `${TRAINED}; every rollout is counted; solved at exactly 1`,
    of(row) {
      const reward = trained(row);
      return { reward, success: reward === 1, counted: true };
    },
  },
  tinker: {
    rule: `${TRAINED}; every rollout is counted; tinker calls groups good or bad, no single rollout`,
    of: (row) => ({ reward: trained(row), success: null, counted: true }),
  },
  rllm: {
    rule: 'the total; every rollout is counted, and an unscored one is wrong; solved by the success rule of the run and environment',
    of(row, success) {
      const reward = scoreOf(row.reward);
      return { reward, success: reward !== null && isSuccess(reward, success), counted: true };
    },
  },
};

/** `success`: the success rule of the rollout's run and environment. */
export const rolloutOfLens = (lens: Lens, row: LensInput, success: SuccessRule): LensRollout => ROLLOUT_LENSES[lens].of(row, success);

/** The rule of `rolloutOfLens` in words. */
export const lensRolloutRule = (lens: Lens): string => ROLLOUT_LENSES[lens].rule;
