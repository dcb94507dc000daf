import { COMPARE_METRICS, type ComparedRuns, type CompareMetric } from '@palestra/protocol';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { UsageError } from '../server-settings.ts';

/**
 * A condition on a figure: `METRIC[.low|.high] (<|<=|>|>=) NUMBER`, such as `reward_mean<-0.02` or `success.high<0`. `low` and `high` are the
 * ends of its 95 % interval. The figures of `palestra compare` are differences, those of `palestra eval` are values.
 */
export interface Condition<Metric extends string = CompareMetric> {
  text: string;
  metric: Metric;
  end: 'low' | 'high' | null;
  comparison: '<' | '<=' | '>' | '>=';
  limit: number;
}

const GRAMMAR =
  /^\s*(?<metric>[a-z_]+\d*)(?:\.(?<end>low|high))?\s*(?<comparison><=|>=|<|>)\s*(?<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*$/i;

/** Throws `UsageError` for a text that is no condition, and what `readMetric` throws for an unknown metric. */
export function parseCondition<Metric extends string>(text: string, readMetric: (name: string) => Metric): Condition<Metric> {
  const parts = GRAMMAR.exec(text)?.groups;
  if (!parts)
    throw new UsageError(`Invalid condition "${text}". Expected METRIC<NUMBER, such as "reward_mean<-0.02" or "success.low<=-0.05".`);
  return {
    text,
    metric: readMetric(parts['metric']!),
    end: (parts['end'] as 'low' | 'high' | undefined) ?? null,
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
  /** Null: there is no such figure. */
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

export interface ComparedOutcome extends Outcome {
  /** Id of the run that is compared with the first. */
  run: string;
}

/** Whether a figure meets a condition. */
export function outcomeOf(
  { text, end, comparison, limit }: Condition<string>,
  figure: { value: number | null; low: number | null; high: number | null } | undefined,
): Outcome {
  const value = figure?.[end ?? 'value'] ?? null;
  return { condition: text, value, met: value === null ? null : holds[comparison](value, limit) };
}

/** Every condition for every pair of runs. */
export function outcomesOf(conditions: readonly Condition[], { pairs }: Pick<ComparedRuns, 'pairs'>): ComparedOutcome[] {
  return pairs.flatMap(({ run, metrics }) =>
    conditions.map((condition) => {
      const found = metrics.find(({ metric }) => metric === condition.metric);
      return { run, ...outcomeOf(condition, found && { value: found.difference, low: found.low, high: found.high }) };
    }),
  );
}

/** The exit code: one condition that is met is decisive; one that cannot be decided, because its figure does not exist, fails. */
export function exitCodeFor(outcomes: readonly Outcome[]): ExitCode {
  if (outcomes.some(({ met }) => met === true)) return EXIT.unmet;
  return outcomes.some(({ met }) => met === null) ? EXIT.failed : EXIT.ok;
}
