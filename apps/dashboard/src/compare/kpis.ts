import type { Kpi } from '../data/run-queries.ts';
import type { ComparedRun } from './runs.ts';

export interface KpiRow {
  key: string;
  label: string;
  /** By run; null for a run without the figure. */
  values: (Kpi | null)[];
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
    };
  });
}

const byNumber = (a: string, b: string) => Number(a.replace(/\D/g, '')) - Number(b.replace(/\D/g, ''));
