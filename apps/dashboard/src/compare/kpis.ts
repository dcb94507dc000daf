import type { Kpi } from '../data/run-queries.ts';
import type { ComparedRun } from './runs.ts';

export interface KpiRow {
  key: string;
  label: string;
  /** By run; null for a run without the figure. */
  values: (Kpi | null)[];
  /** Differences of the other runs to the first. */
  deltas: (Difference | null)[];
}
export interface Difference {
  value: number;
  /** Half width of the 95 % interval; null if one of the two figures has no interval. */
  half: number | null;
}

/** Canonical figures of a comparison, in this order. Other lenses show all their figures. */
const ORDER = [
  'reward_mean',
  'avg@n',
  'success',
  /^pass@/,
  'turns',
  'calls',
  'tool_error',
  'truncated',
  'zero_variance',
  'tokens_out',
  'tokens_tool',
  'scored',
  'groups',
];

const halfOf = ({ low, high }: Kpi): number | null => (low === null || high === null ? null : (high - low) / 2);

/**
 * The difference of a figure between two runs. The runs are independent, so variances add: the half width is the root of the sum of both
 * squared (exact for normal intervals, approximate for bootstrap intervals).
 */
export function difference(first: Kpi | null, other: Kpi | null): Difference | null {
  if (first?.value == null || other?.value == null) return null;
  const [a, b] = [halfOf(first), halfOf(other)];
  return { value: other.value - first.value, half: a === null || b === null ? null : Math.hypot(a, b) };
}

export function kpiRows(runs: readonly ComparedRun[]): KpiRow[] {
  const canonical = runs.every(({ summary }) => summary.lens === 'canonical');
  const all = [...new Set(runs.flatMap(({ summary }) => summary.kpis.map(({ key }) => key)))];
  const chosen = canonical
    ? ORDER.flatMap((one) =>
        typeof one === 'string' ? all.filter((key) => key === one) : all.filter((key) => one.test(key)).toSorted(byNumber),
      )
    : all;
  return chosen.map((key) => {
    const values = runs.map(({ summary }) => summary.kpis.find((kpi) => kpi.key === key) ?? null);
    const label = values.find((kpi) => kpi !== null)!.label;
    return {
      key,
      label: label.replace(/k$/, key.replace(/^.*[@^]/, '')),
      values,
      deltas: values.slice(1).map((other) => difference(values[0]!, other)),
    };
  });
}

const byNumber = (a: string, b: string) => Number(a.replace(/\D/g, '')) - Number(b.replace(/\D/g, ''));
