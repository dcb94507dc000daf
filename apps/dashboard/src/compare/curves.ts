import type { ChartX, Series } from '../data/run-queries.ts';
import { curvesOf, type Curves } from '../overview/curves.ts';
import type { ComparedRun } from './runs.ts';

/** One metric of all runs, on shared points. */
export interface ComparedCurves {
  x: number[];
  /** By run; null for a run without the metric. */
  lines: (ComparedLine | null)[];
}
export interface ComparedLine {
  series: Series;
  values: (number | null | undefined)[];
  denominators: (number | null | undefined)[];
  hollow: boolean[];
}

/** Curves of each run on a shared x: step, rollouts so far, or milliseconds since the first point of the run. */
export function curvesOfRuns(runs: readonly ComparedRun[], x: ChartX): { curves: Curves; at: number[] }[] {
  return runs.map(({ series, summary }) => {
    const curves = curvesOf(series, summary.phase);
    const first = x === 'time' ? (curves.x[0] ?? 0) : 0;
    return { curves, at: curves.x.map((value) => value - first) };
  });
}

/** The lines of metric `m`. */
export function compared(each: readonly { curves: Curves; at: number[] }[], m: string): ComparedCurves {
  const chosen = each.map(({ curves }) => curves.of(m)[0]);
  const known = chosen.map((series) => series !== undefined && series.value.some((value) => value !== null));
  const x = [...new Set(each.flatMap(({ at }, i) => (known[i] ? at : [])))].toSorted((a, b) => a - b);
  const positions = new Map(x.map((value, i) => [value, i]));
  const spread = <T>(at: readonly number[], column: readonly T[]): (T | undefined)[] => {
    const values = x.map((): T | undefined => undefined);
    at.forEach((value, i) => (values[positions.get(value)!] = column[i]));
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

/** The largest k for which every run with groups has pass@k; null if no run has groups. */
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

/** The value of a line at a point, else the last value before it, because runs rarely share points in time. Null beyond its end. */
export function valueAt(values: readonly (number | null | undefined)[], index: number): number | null {
  if (values.findLastIndex((value) => value !== undefined) < index) return null;
  for (let i = index; i >= 0; i -= 1) if (values[i] !== undefined) return values[i] ?? null;
  return null;
}

/** The last value of a line. */
export const lastOf = (values: readonly (number | null | undefined)[]): number | null =>
  values.findLast((value) => value !== undefined) ?? null;
