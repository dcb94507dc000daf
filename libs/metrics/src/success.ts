import { remember } from './remember.ts';
import { isFailedAt } from './denominators.ts';
import { type MetricContext, type RolloutColumns, type SuccessRule } from './rollout-columns.ts';

/** 1.0 if all effective rewards lie in [0, 1], else > 0 (docs/reference/metrics.md#success). */
export function inferSuccessRule(rewards: Iterable<number | null>): SuccessRule {
  for (const reward of rewards) {
    if (reward !== null && Number.isFinite(reward) && (reward < 0 || reward > 1)) return { threshold: 0, strict: true };
  }
  return { threshold: 1, strict: false };
}

export function isSuccess(reward: number, rule: SuccessRule): boolean {
  return rule.strict ? reward > rule.threshold : reward >= rule.threshold;
}

/** The rule of every environment of these rollouts: the context's, else inferred from all scored rollouts of that environment. */
export function successRules(columns: RolloutColumns, context: MetricContext): ReadonlyMap<string | null, SuccessRule> {
  return remember(columns, context, 'success', () => computeRules(columns, context));
}

function computeRules(columns: RolloutColumns, { success }: MetricContext): ReadonlyMap<string | null, SuccessRule> {
  const { environment, reward } = columns;
  const rewards = new Map<string | null, (number | null)[]>();
  environment.forEach((name, at) => {
    const known = rewards.get(name) ?? [];
    known.push(isFailedAt(columns, at) ? null : (reward[at] ?? null));
    rewards.set(name, known);
  });
  const configured = (name: string | null) => (success !== undefined && 'threshold' in success ? success : success?.get(name));
  return new Map([...rewards].map(([name, scores]) => [name, configured(name) ?? inferSuccessRule(scores)]));
}
