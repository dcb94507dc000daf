import type { LensColumns } from '@palestra/exports';
import { rolloutOfLens, type SuccessRule } from '@palestra/metrics';
import { type Lens, STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import { type RunSettings, trainedReward, type TrainedRewardInput } from '@palestra/rollouts';
import { wordOf } from '../store/vocabulary-codes.ts';
import type { DetailRow } from './rollout-export.rows.sql.ts';

/** Reward, success and count of a rollout by the rules of the lens, as its curves count it (docs/reference/metrics.md#lenses). */
export function lensColumns(lens: Lens, row: DetailRow): LensColumns {
  const fields = {
    reward: row.reward ?? row.partial_reward,
    lastReward: row.last_reward,
    assistantTurns: row.turns,
    failure: wordOf(UNSCORED_FAILURES, row.failure),
    stop: wordOf(STOP_REASONS, row.stop),
    ...trainedRewardOf(row),
  };
  const { reward, success, counted } = rolloutOfLens(lens, fields, successRuleOf(row));
  return { lens_reward: reward, lens_success: success, lens_counted: counted };
}

/**
 * The success rule (docs/reference/metrics.md#success): the owner's threshold, else 1 if all rewards of the run and environment are in [0,
 * 1], else above 0.
 */
function successRuleOf({ run_settings: { successThreshold }, unit_rewards }: DetailRow): SuccessRule {
  if (typeof successThreshold === 'number') return { threshold: successThreshold, strict: false };
  return unit_rewards ? { threshold: 1, strict: false } : { threshold: 0, strict: true };
}

/** Empty unless all four settings exist, and for a reduction by minimum, because the narrow row has no minimum of step rewards. */
function trainedRewardOf(row: DetailRow): { trainedReward?: number | null } {
  const settings: RunSettings = row.run_settings;
  const { rewardReduce, nonterminalReward, minReward, maxReward } = settings;
  const isComplete =
    typeof rewardReduce === 'string' && nonterminalReward !== undefined && typeof minReward === 'number' && typeof maxReward === 'number';
  if (!isComplete || (rewardReduce === 'min' && row.reward_steps > 1)) return {};
  const fields: TrainedRewardInput = {
    source: (row.source ?? 'generic') as TrainedRewardInput['source'],
    stop: wordOf(STOP_REASONS, row.stop) ?? 'unknown',
    failureClass: wordOf(UNSCORED_FAILURES, row.failure),
    rewardSteps: row.reward_steps,
    rewardSum: row.reward ?? row.partial_reward,
    rewardMax: row.max_reward,
    rewardMin: row.reward_steps === 1 ? (row.reward ?? row.partial_reward) : null,
    rewardFinal: row.last_reward,
  };
  return { trainedReward: trainedReward(fields, settings) };
}
