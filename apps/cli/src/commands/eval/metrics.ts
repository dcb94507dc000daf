import { UsageError } from '../../server-settings.ts';
import type { Condition } from '../compare-conditions.ts';

/** Figures that `--fail-if` can name: the mean reward, the share of solved episodes, pass@k, and the share of episodes without a score. */
export type EvalMetric = 'reward_mean' | 'success' | 'failed' | `pass_at_${number}`;
export type EvalCondition = Condition<EvalMetric>;

/** Throws `UsageError` for an unknown metric. */
export function parseEvalMetric(name: string): EvalMetric {
  if (name === 'reward_mean' || name === 'success' || name === 'failed') return name;
  const size = /^pass_at_([1-9]\d{0,3})$/.exec(name)?.[1];
  if (size === undefined)
    throw new UsageError(`Unknown metric "${name}". Available: reward_mean, success, failed, pass_at_1, pass_at_2, ...`);
  return `pass_at_${Number(size)}`;
}
