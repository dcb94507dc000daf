import type { LensColumns } from '@palestra/exports';
import { rolloutOfLens, type SuccessRule } from '@palestra/metrics';
import { type Lens, STOP_REASONS, UNSCORED_FAILURES } from '@palestra/protocol';
import { type RunSettings, trainedReward, type TrainedRewardFacts } from '@palestra/rollouts';
import { wordOf } from '../store/codes.ts';
import type { DetailRow } from './rollout-export.rows.sql.ts';

/** What the trainer of the lens makes of a rollout; as its curves count it (dashboard.md 3.2), one by one. */
export function lensColumns(lens: Lens, row: DetailRow): LensColumns {
  const facts = {
    reward: row.reward,
    lastReward: row.last_reward,
    assistantTurns: row.turns,
    failure: wordOf(UNSCORED_FAILURES, row.failure),
    stop: wordOf(STOP_REASONS, row.stop),
    ...trainedOf(row),
  };
  const { reward, success, counted } = rolloutOfLens(lens, facts, successRuleOf(row));
  return { lens_reward: reward, lens_success: success, lens_counted: counted };
}

/** Decision 14.3: the owner's threshold, else 1 where all rewards of the run and environment lie in [0, 1], else above 0. */
function successRuleOf({ run_settings: { successThreshold }, unit_rewards }: DetailRow): SuccessRule {
  if (typeof successThreshold === 'number') return { threshold: successThreshold, strict: false };
  return unit_rewards ? { threshold: 1, strict: false } : { threshold: 0, strict: true };
}

/** Nothing where the four settings are not given, or reduce by the least of the step rewards, which the narrow row does not hold. */
function trainedOf(row: DetailRow): { trainedReward?: number | null } {
  const settings: RunSettings = row.run_settings;
  const { rewardReduce, nonterminalReward, minReward, maxReward } = settings;
  const given =
    typeof rewardReduce === 'string' && nonterminalReward !== undefined && typeof minReward === 'number' && typeof maxReward === 'number';
  if (!given || (rewardReduce === 'min' && row.reward_steps > 1)) return {};
  const facts: TrainedRewardFacts = {
    source: (row.source ?? 'generic') as TrainedRewardFacts['source'],
    stop: wordOf(STOP_REASONS, row.stop) ?? 'unknown',
    failureClass: wordOf(UNSCORED_FAILURES, row.failure),
    rewardSteps: row.reward_steps,
    rewardSum: row.reward,
    rewardMax: row.max_reward,
    rewardMin: row.reward_steps === 1 ? row.reward : null,
    rewardFinal: row.last_reward,
  };
  return { trainedReward: trainedReward(facts, settings) };
}
