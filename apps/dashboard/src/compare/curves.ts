import type { Series } from '../data/run-reads.ts';
import { curvesOf, type Curves } from '../overview/curves.ts';
import type { ComparedRun } from './runs.ts';

export type CompareX = 'step' | 'time' | 'count';

/** One metric of all runs on common points. */
export interface ComparedCurves {
  x: number[];
  /** By run; null: this run has nothing of the metric. */
  lines: (ComparedLine | null)[];
}
export interface ComparedLine {
  series: Series;
  values: (number | null | undefined)[];
  denominators: (number | null | undefined)[];
  hollow: boolean[];
}

/** Curves of each run, with x that runs share: a step, rollouts so far, or milliseconds since the run's own first point. */
export function curvesOfRuns(runs: readonly ComparedRun[], x: CompareX): { curves: Curves; at: number[] }[] {
  return runs.map(({ series, summary }) => {
    const curves = curvesOf(series, summary.phase);
    const first = x === 'time' ? (curves.x[0] ?? 0) : 0;
    return { curves, at: curves.x.map((value) => value - first) };
  });
}

/** `m`: the metric of each run, which may be another k. */
export function compared(each: readonly { curves: Curves; at: number[] }[], m: string): ComparedCurves {
  const chosen = each.map(({ curves }) => curves.of(m)[0]);
  const known = chosen.map((series) => series !== undefined && series.value.some((value) => value !== null));
  const x = [...new Set(each.flatMap(({ at }, i) => (known[i] ? at : [])))].toSorted((a, b) => a - b);
  const place = new Map(x.map((value, i) => [value, i]));
  const spread = <T>(at: readonly number[], column: readonly T[]): (T | undefined)[] => {
    const values = x.map((): T | undefined => undefined);
    at.forEach((value, i) => (values[place.get(value)!] = column[i]));
    return values;
  };
  const lines = each.map(({ curves, at }, i) => {
    const series = chosen[i];
    if (!known[i] || series === undefined) return null;
    return {
      series,
      values: spread(at, curves.values(series)),
      denominators: spread(at, curves.denominators(series)),
      hollow: spread(at, curves.hollow).map(Boolean),
    };
  });
  return { x, lines };
}

/** The largest k for which every run that has groups has pass@k; null without groups. */
export function commonK(runs: readonly ComparedRun[]): number | null {
  const each = runs
    .map(({ series, summary }) =>
      series.series
        .filter(({ key, phase, value }) => phase === summary.phase && /^pass@\d+$/.test(key) && value.some((one) => one !== null))
        .map(({ key }) => Number(key.slice(5))),
    )
    .filter((ks) => ks.length > 0);
  const common = each[0]?.filter((k) => each.every((ks) => ks.includes(k))) ?? [];
  return common.length === 0 ? null : Math.max(...common);
}

/** The value of a line at a point, or the last one before it: runs seldom have points at the same moment. Null beyond its end. */
export function valueAt(values: readonly (number | null | undefined)[], index: number): number | null {
  if (values.findLastIndex((value) => value !== undefined) < index) return null;
  for (let i = index; i >= 0; i -= 1) if (values[i] !== undefined) return values[i] ?? null;
  return null;
}

/** The last value that a line has. */
export const lastOf = (values: readonly (number | null | undefined)[]): number | null =>
  values.findLast((value) => value !== undefined) ?? null;
