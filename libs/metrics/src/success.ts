import { remember } from './remember.ts';
import { type MetricContext, type RolloutFacts, scoreOf, type SuccessRule } from './facts.ts';
import { groupBy } from './group-by.ts';

/** Decision 14.3: 1.0 if all scored totals lie in [0, 1], else > 0. */
export function inferSuccessRule(rewards: Iterable<number | null>): SuccessRule {
  for (const reward of rewards) {
    if (reward !== null && Number.isFinite(reward) && (reward < 0 || reward > 1)) return { threshold: 0, strict: true };
  }
  return { threshold: 1, strict: false };
}

export function isSuccess(reward: number, rule: SuccessRule): boolean {
  return rule.strict ? reward > rule.threshold : reward >= rule.threshold;
}

/** The rule of every environment among the rows: the context's, else inferred from all scored rows of that environment. */
export function successRules(rows: readonly RolloutFacts[], context: MetricContext): ReadonlyMap<string | null, SuccessRule> {
  return remember(rows, context, 'success', () => rulesOf(rows, context));
}

function rulesOf(rows: readonly RolloutFacts[], context: MetricContext): ReadonlyMap<string | null, SuccessRule> {
  const { success } = context;
  const rules = new Map<string | null, SuccessRule>();
  for (const [environment, own] of groupBy(rows, (row) => row.environment)) {
    const given = success !== undefined && 'threshold' in success ? success : success?.get(environment);
    rules.set(environment, given ?? inferSuccessRule(own.map(scoreOf)));
  }
  return rules;
}
