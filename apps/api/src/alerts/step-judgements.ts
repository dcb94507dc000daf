import { studentIntervalOfSums, wilsonInterval } from '@palestra/metrics';
import type { AlertEvidence, MetricCondition } from '@palestra/protocol';
import { printText } from '@palestra/query';
import { countedOf, formatValue, subjectOf } from './alert-text.ts';
import type { Judgement } from './alert-state.ts';

/** What one step counts for a metric. */
export interface StepPoint {
  step: number;
  count: number;
  sum: number;
  /** Sum of squares; null for a share, whose `sum` of `count` are hits. */
  squares: number | null;
}

/** One point for each step. `points`: in the order of steps, with one for each variant of an environment. */
export function mergeSteps(points: readonly StepPoint[]): StepPoint[] {
  const merged: StepPoint[] = [];
  for (const point of points) {
    const last = merged.at(-1);
    if (last?.step !== point.step) merged.push({ ...point });
    else {
      last.count += point.count;
      last.sum += point.sum;
      last.squares = last.squares === null || point.squares === null ? null : last.squares + point.squares;
    }
  }
  return merged;
}

export interface StepJudgements {
  judgements: Judgement[];
  /** Steps with fewer than `min_n`. */
  skipped: number;
}

/**
 * Judges each step from `from` on: the figure of the last `condition.steps` steps together, as the pages merge steps. The first steps of a
 * run have fewer before them and are judged from what there is. `points`: in the order of steps.
 */
export function judgeSteps(condition: MetricCondition, points: readonly StepPoint[], from = -Infinity): StepJudgements {
  const judgements: Judgement[] = [];
  let skipped = 0;
  for (const [at, { step }] of points.entries()) {
    if (step < from) continue;
    const merged = points.slice(Math.max(0, at - condition.steps + 1), at + 1);
    const count = sumOf(merged, (point) => point.count);
    if (count < condition.min_n) skipped += 1;
    else judgements.push(judge(condition, merged, count));
  }
  return { judgements, skipped };
}

const sumOf = (points: readonly StepPoint[], of: (point: StepPoint) => number): number =>
  points.reduce((total, point) => total + of(point), 0);

function judge(condition: MetricCondition, merged: readonly StepPoint[], count: number): Judgement {
  const sum = sumOf(merged, (point) => point.sum);
  const isShare = merged.some(({ squares }) => squares === null);
  const interval = isShare
    ? wilsonInterval(sum, count)
    : studentIntervalOfSums({ count, sum, sumOfSquares: sumOf(merged, ({ squares }) => squares!) });
  const value = sum / count;
  const [first, step] = [merged[0]!.step, merged.at(-1)!.step];
  const evidence: AlertEvidence = {
    text: sentence(condition, { value, count, first, step, interval }),
    value,
    threshold: condition.value,
    n: count,
    low: interval?.low ?? null,
    high: interval?.high ?? null,
    from_step: first,
    step,
    q: queryOf(condition, first, step),
    baseline: null,
  };
  return { step, at: null, holds: condition.op === 'above' ? value > condition.value : value < condition.value, evidence };
}

interface Found {
  value: number;
  count: number;
  first: number;
  step: number;
  interval: { low: number; high: number } | null;
}

function sentence(condition: MetricCondition, { value, count, first, step, interval }: Found): string {
  const where = first === step ? `at step ${step}` : `at steps ${first} to ${step}`;
  const range = interval ? `95 % interval ${formatValue(condition, interval.low)} to ${formatValue(condition, interval.high)}, ` : '';
  return `${subjectOf(condition)}: ${formatValue(condition, value)} ${where} (${range}${countedOf(condition, count)}).`;
}

/** The clause of a query that chooses the environment; none for every environment. */
export const environmentClause = (environment: string | null): string[] => (environment === null ? [] : [`env:${printText(environment)}`]);

/** The rollouts that show the figure, as a query of the explorer. */
function queryOf({ metric, tool, stop, phase, environment }: MetricCondition, first: number, step: number): string {
  const steps = first === step ? `step:${step}` : `step:${first}..${step}`;
  const shown = {
    reward_mean: 'is:scored',
    success: 'is:scored',
    tool_error: tool === null ? 'has:error' : `tool.error:${printText(tool)}`,
    stop_share: `stop:${stop}`,
    failed: 'stop:env_error,infra_error',
    truncated: 'is:truncated',
  }[metric];
  return [steps, shown, ...(phase === null ? [] : [`phase:${phase}`]), ...environmentClause(environment)].join(' ');
}
