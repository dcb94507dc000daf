import { COMPARE_METRICS, type ComparedRuns, type CompareMetric } from '@palestra/protocol';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { UsageError } from '../server-settings.ts';

/**
 * A condition on a difference: `METRIC[.low|.high] (<|<=|>|>=) NUMBER`, such as `reward_mean<-0.02` or `success.high<0`. The difference is that
 * of the other run minus the first; `low` and `high` are the ends of its 95 % interval.
 */
export interface Condition {
  text: string;
  metric: CompareMetric;
  figure: 'difference' | 'low' | 'high';
  comparison: '<' | '<=' | '>' | '>=';
  limit: number;
}

const GRAMMAR =
  /^\s*(?<metric>[a-z_]+)(?:\.(?<end>low|high))?\s*(?<comparison><=|>=|<|>)\s*(?<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*$/i;

/** Throws `UsageError` for a text that is no condition or names an unknown metric. */
export function parseCondition(text: string): Condition {
  const parts = GRAMMAR.exec(text)?.groups;
  if (!parts)
    throw new UsageError(`Invalid condition "${text}". Expected METRIC<NUMBER, such as "reward_mean<-0.02" or "success.low<=-0.05".`);
  return {
    text,
    metric: parseMetric(parts['metric']!),
    figure: (parts['end'] as 'low' | 'high' | undefined) ?? 'difference',
    comparison: parts['comparison'] as Condition['comparison'],
    limit: Number(parts['limit']),
  };
}

/** Throws `UsageError` for an unknown metric. */
export function parseMetric(name: string): CompareMetric {
  const metric = COMPARE_METRICS.find((one) => one === name);
  if (!metric) throw new UsageError(`Unknown metric "${name}". Available: ${COMPARE_METRICS.join(', ')}.`);
  return metric;
}

export interface Outcome {
  condition: string;
  /** Id of the run that is compared with the first. */
  run: string;
  /** Null: the runs have no such figure. */
  value: number | null;
  /** Null: unknown, because there is no value. */
  met: boolean | null;
}

const holds: Record<Condition['comparison'], (value: number, limit: number) => boolean> = {
  '<': (value, limit) => value < limit,
  '<=': (value, limit) => value <= limit,
  '>': (value, limit) => value > limit,
  '>=': (value, limit) => value >= limit,
};

/** Every condition for every pair of runs. */
export function outcomesOf(conditions: readonly Condition[], { pairs }: Pick<ComparedRuns, 'pairs'>): Outcome[] {
  return pairs.flatMap(({ run, metrics }) =>
    conditions.map(({ text, metric, figure, comparison, limit }) => {
      const value = metrics.find((one) => one.metric === metric)?.[figure] ?? null;
      return { condition: text, run, value, met: value === null ? null : holds[comparison](value, limit) };
    }),
  );
}

/** The exit code of a comparison: one condition that is met is decisive; one that cannot be decided, because its figure does not exist, fails. */
export function exitCodeFor(outcomes: readonly Outcome[]): ExitCode {
  if (outcomes.some(({ met }) => met === true)) return EXIT.unmet;
  return outcomes.some(({ met }) => met === null) ? EXIT.failed : EXIT.ok;
}
