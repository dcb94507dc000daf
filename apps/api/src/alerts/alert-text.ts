import { formatReward, withoutNoise } from '@palestra/kit/reward-text';
import type { AlertCondition, MetricCondition } from '@palestra/protocol';

/** `34.5 %`. Only none is `0 %` and only all is `100 %`. */
function percent(share: number): string {
  // Without the noise of floating-point numbers, which the ends of intervals have.
  const exact = Number(share.toFixed(9));
  const rounded = Math.round(exact * 1000) / 10;
  if (rounded === 0 && exact > 0) return '<0.1 %';
  return rounded === 100 && exact < 1 ? '>99.9 %' : `${rounded} %`;
}

/** A figure of the metric. */
export const formatValue = ({ metric }: Pick<MetricCondition, 'metric'>, value: number): string =>
  metric === 'reward_mean' ? formatReward(value) : percent(value);

/** The value of a condition, as a member typed it. */
const thresholdText = ({ metric, value }: MetricCondition): string =>
  metric === 'reward_mean' ? formatReward(value) : `${withoutNoise(value * 100)} %`;

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** ` in acme/whodunit`; empty for every environment. */
export const inEnvironment = ({ environment }: Pick<AlertCondition, 'environment'>): string =>
  environment === null ? '' : ` in ${environment}`;

/** What the condition compares, as the subject of a sentence. */
export const subjectOf = (condition: MetricCondition): string => `${figureOf(condition)}${inEnvironment(condition)}`;

function figureOf({ metric, tool, stop }: MetricCondition): string {
  switch (metric) {
    case 'reward_mean':
      return 'Mean reward';
    case 'success':
      return 'Success rate';
    case 'tool_error':
      return tool === null ? 'Tool errors' : `Tool errors of ${tool}`;
    case 'stop_share':
      return `Share of rollouts that stopped with ${stop}`;
    case 'failed':
      return 'Share of rollouts that failed because of the environment or the infrastructure';
    case 'truncated':
      return 'Share of truncated rollouts';
  }
}

/** The noun of `n`. */
export const countedOf = ({ metric }: MetricCondition, n: number): string => plural(n, metric === 'tool_error' ? 'result' : 'rollout');

/** `baseline`: name of the baseline run. */
export function conditionText(condition: AlertCondition, baseline: string | null = null): string {
  switch (condition.kind) {
    case 'metric': {
      const over = condition.steps === 1 ? 'at a step' : `over ${condition.steps} steps`;
      return `${subjectOf(condition)} ${condition.op} ${thresholdText(condition)} ${over}`;
    }
    case 'baseline': {
      const more = condition.margin === 0 ? '' : ` by more than ${formatReward(condition.margin)}`;
      return `Mean reward${inEnvironment(condition)} below ${baseline ?? 'a run that was deleted'}${more} at the same step`;
    }
    case 'count':
      return `More than ${plural(condition.value, 'rollout')} of ${condition.q}${inEnvironment(condition)} within ${condition.minutes} min`;
    case 'silence':
      return `No rollout${inEnvironment(condition)} for ${condition.minutes} min`;
    case 'crashes':
      return `At least ${plural(condition.count, 'failed instance')} of a version of ${condition.environment ?? 'a hosted environment'} within ${condition.minutes} min`;
  }
}
