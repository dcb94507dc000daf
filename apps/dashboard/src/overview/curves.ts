import type { RunSeries } from '@palestra/protocol';
import type { Series } from '../data/run-reads.ts';
import type { Curve } from './figures.ts';

export type Phase = Series['phase'];
type Values = readonly (number | null | undefined)[];

/** Series of one phase on the same points. */
export interface Curves {
  /** Ascending. */
  steps: number[];
  x: number[];
  /** Some group of the step still waits for rollouts. */
  hollow: boolean[];
  /** Those of a metric, in the answer's order: several for a family such as `pass@{k}`, or one an environment. */
  of: (m: string) => Series[];
  /** Its values at `steps`: null where there is none, undefined where the answer left the point out. */
  values: (series: Curve | undefined) => Values;
  /** Its denominators at `steps`. */
  denominators: (series: Curve | undefined) => Values;
}

/** Brings the series of an answer to common points: a long answer leaves out points, of each series its own. */
export function curvesOf(answer: RunSeries | undefined, phase: Phase | null): Curves {
  const own = (answer?.series ?? []).filter((series) => phase === null || series.phase === phase);
  const points = new Map<number, { x: number; hollow: boolean }>();
  for (const { step, x, incomplete_groups } of own) {
    step.forEach((at, i) => {
      const known = x[i];
      if (typeof known === 'number' && !points.has(at)) points.set(at, { x: known, hollow: (incomplete_groups[i] ?? 0) > 0 });
    });
  }
  const steps = [...points.keys()].toSorted((a, b) => a - b);
  const place = new Map(steps.map((step, i) => [step, i]));
  const spread = (series: Curve | undefined, column: readonly (number | null)[]): Values => {
    const values: (number | null | undefined)[] = steps.map(() => undefined);
    series?.step.forEach((step, i) => {
      const at = place.get(step);
      if (at !== undefined) values[at] = column[i] ?? null;
    });
    return values;
  };
  return {
    steps,
    x: steps.map((step) => points.get(step)!.x),
    hollow: steps.map((step) => points.get(step)!.hollow),
    of: (m) => own.filter((series) => series.m === m || series.key === m),
    values: (series) => spread(series, series?.value ?? []),
    denominators: (series) => spread(series, series?.denominator ?? []),
  };
}

/** Columns of an answer on the points of the curves: their first and last step, and where they stand. */
export interface Columns {
  from: number[];
  to: number[];
  x: number[];
}

/**
 * A column of several steps stands in the middle of them. Of windows of arrival an answer says when they were: curves number them in their
 * order, and there are never so many that one column holds two.
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
  const place = new Map(steps.map((step, i) => [step, x[i]!]));
  const placeOf = (step: number) => place.get(step) ?? step;
  return { from, to, x: from.map((step, i) => (placeOf(step) + placeOf(to[i]!)) / 2) };
}

/** Whether a series has anything to draw. */
export const hasValues = (series: Curve | undefined): series is Curve =>
  series !== undefined && series.value.some((value) => value !== null);

/** First, last, least and largest value in words, for who cannot see the curve. */
export function curveInWords(name: string, values: Values, at: readonly string[], format: (value: number) => string): string {
  const known = values.flatMap((value, i) => (typeof value === 'number' ? [[value, i] as const] : []));
  if (known.length === 0) return `${name}: no values`;
  const [first, last] = [known[0]!, known.at(-1)!];
  const sorted = known.map(([value]) => value).toSorted((a, b) => a - b);
  return `${name}: ${format(first[0])} at ${at[first[1]]}, ${format(last[0])} at ${at[last[1]]}, between ${format(sorted[0]!)} and ${format(sorted.at(-1)!)}`;
}
