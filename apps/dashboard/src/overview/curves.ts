import type { RunSeries } from '@palestra/protocol';
import type { Series } from '../data/run-queries.ts';
import type { Curve } from './figures.ts';

export type Phase = Series['phase'];
type Values = readonly (number | null | undefined)[];

/** Series of one phase on shared points. */
export interface Curves {
  /** Ascending. */
  steps: number[];
  x: number[];
  /** Whether a group of the step is incomplete. */
  hollow: boolean[];
  /** The series of a metric, in the order of the answer: several for a family such as `pass@{k}`, or one per environment. */
  of: (m: string) => Series[];
  /** The values at `steps`: null for no value, undefined for a point that the answer omits. */
  values: (series: Curve | undefined) => Values;
  /** The denominators at `steps`. */
  denominators: (series: Curve | undefined) => Values;
}

/** Aligns the series of an answer: a long answer omits points, different ones in each series. */
export function curvesOf(answer: RunSeries | undefined, phase: Phase | null): Curves {
  const ofPhase = (answer?.series ?? []).filter((series) => phase === null || series.phase === phase);
  const points = new Map<number, { x: number; hollow: boolean }>();
  for (const { step, x, incomplete_groups } of ofPhase) {
    step.forEach((number, i) => {
      const at = x[i];
      if (typeof at === 'number' && !points.has(number)) points.set(number, { x: at, hollow: (incomplete_groups[i] ?? 0) > 0 });
    });
  }
  const steps = [...points.keys()].toSorted((a, b) => a - b);
  const positions = new Map(steps.map((step, i) => [step, i]));
  const spread = (series: Curve | undefined, column: readonly (number | null)[]): Values => {
    const values: (number | null | undefined)[] = steps.map(() => undefined);
    series?.step.forEach((step, i) => {
      const at = positions.get(step);
      if (at !== undefined) values[at] = column[i] ?? null;
    });
    return values;
  };
  return {
    steps,
    x: steps.map((step) => points.get(step)!.x),
    hollow: steps.map((step) => points.get(step)!.hollow),
    of: (m) => ofPhase.filter((series) => series.m === m || series.key === m),
    values: (series) => spread(series, series?.value ?? []),
    denominators: (series) => spread(series, series?.denominator ?? []),
  };
}

/** Columns of an answer on the points of the curves: first step, last step, and x. */
export interface Columns {
  from: number[];
  to: number[];
  x: number[];
}

/**
 * A column of several steps stands in their middle. For arrival windows the answer has times, and the curves number the windows in order;
 * there are never so many that a column covers two.
 */
export function columnsOn(
  { from, to }: Pick<Columns, 'from' | 'to'>,
  { steps, x }: Pick<Curves, 'steps' | 'x'>,
  isWindow: boolean,
): Columns {
  if (isWindow) {
    const numbers = from.map((_at, i) => steps[i] ?? i);
    return { from: numbers, to: numbers, x: from.map((at, i) => x[i] ?? at) };
  }
  const known = new Map(steps.map((step, i) => [step, x[i]!]));
  const xOf = (step: number) => known.get(step) ?? step;
  return { from, to, x: from.map((step, i) => (xOf(step) + xOf(to[i]!)) / 2) };
}

/** Whether a series has values to draw. */
export const hasValues = (series: Curve | undefined): series is Curve =>
  series !== undefined && series.value.some((value) => value !== null);

/** First, last, smallest and largest value in words, for screen readers. */
export function curveInWords(name: string, values: Values, at: readonly string[], format: (value: number) => string): string {
  const known = values.flatMap((value, i) => (typeof value === 'number' ? [[value, i] as const] : []));
  if (known.length === 0) return `${name}: no values`;
  const [first, last] = [known[0]!, known.at(-1)!];
  const sorted = known.map(([value]) => value).toSorted((a, b) => a - b);
  return `${name}: ${format(first[0])} at ${at[first[1]]}, ${format(last[0])} at ${at[last[1]]}, between ${format(sorted[0]!)} and ${format(sorted.at(-1)!)}`;
}
