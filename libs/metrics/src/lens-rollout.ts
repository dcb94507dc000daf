import type { Lens } from '@palestra/protocol';
import { isFailed } from './denominators.ts';
import { type RolloutFigures, scoreOf, type SuccessRule } from './rollout-columns.ts';
import { isSuccess } from './success.ts';

/** What a lens reads of one rollout. */
export type LensInput = Pick<RolloutFigures, 'reward' | 'lastReward' | 'trainedReward' | 'assistantTurns' | 'failure' | 'stop'>;

/** One rollout as a trainer counts it. The mean of `reward` over what is `counted` is the mean that the lens shows of these rollouts. */
export interface LensRollout {
  /** null = that trainer has no number for it. */
  reward: number | null;
  /** Whether it counts as solved; null = that trainer does not say it of single rollouts, or what it follows from is not known. */
  success: boolean | null;
  /** Whether it is in the trainer's mean; null = what that follows from is not known. */
  counted: boolean | null;
}

interface RolloutLens {
  /** For people. */
  rule: string;
  /** `success`: the rule of its run and environment (decision 14.3). */
  of(row: LensInput, success: SuccessRule): LensRollout;
}

/** slime, miles and tinker: what they train on where the run's four settings are known, else the environment's total; null = 0. */
const trained = (row: LensInput): number => (row.trainedReward !== undefined ? (row.trainedReward ?? 0) : (scoreOf(row.reward) ?? 0));
const TRAINED = 'the total as the run’s settings reduce and clamp it, the plain total where they are not all given; null counts as 0';

/** As the definitions in lenses/ count, whose sources and commits they name. */
const ROLLOUT_LENSES: Record<Lens, RolloutLens> = {
  canonical: {
    rule: 'the total; unscored rollouts have none and are in no mean; solved by the success rule of the run and environment',
    of(row, success) {
      const reward = scoreOf(row.reward);
      return { reward, success: reward === null ? null : isSuccess(reward, success), counted: reward !== null };
    },
  },
  skyrl: {
    rule: 'the total, null counts as 0; solved when the reward of the last step is above 0 (last-token pass), whatever the total is; where that step is not known nobody says',
    of: (row) => ({ reward: scoreOf(row.reward) ?? 0, success: row.lastReward === null ? null : row.lastReward > 0, counted: true }),
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
    rule: 'the same as canonical: the total, unscorable rollouts are left out; TRL calls no single rollout solved',
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
    rule: 'the same reward as canonical; every rollout is counted, and an unscored one is wrong; solved by the success rule of the run and environment',
    of(row, success) {
      const reward = scoreOf(row.reward);
      return { reward, success: reward !== null && isSuccess(reward, success), counted: true };
    },
  },
};

/** `success`: the success rule of the rollout's run and environment. */
export const rolloutOfLens = (lens: Lens, row: LensInput, success: SuccessRule): LensRollout => ROLLOUT_LENSES[lens].of(row, success);

/** What `rolloutOfLens` says, in words; of a lens that adds nothing to the canonical reward it says that. */
export const lensRolloutRule = (lens: Lens): string => ROLLOUT_LENSES[lens].rule;
