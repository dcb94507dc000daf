import type { StopReason } from '@palestra/protocol';
import { select } from './denominators.ts';
import type { MetricContext, RolloutFacts } from './facts.ts';
import { allGroupStats, type GroupStats, groupStats, mergeGroupStats } from './group-stats.ts';
import { emptyHistogram, histogram, mergeHistograms, type RewardHistogram } from './histogram.ts';
import { successRules } from './success.ts';

/** Sums of a set of rollouts (a step, an environment in a step), enough to serve the canonical means and rates without the rows. */
export interface Rollup {
  total: GroupStats;
  groups: Record<string, GroupStats>;
  histogram: RewardHistogram;
  /** Rollouts by stop reason; `null` counts as `unknown`. */
  stops: Partial<Record<StopReason, number>>;
  calls: number;
  callErrors: number;
  turns: { sum: number; known: number };
  tokensOut: { sum: number; known: number };
}

export function emptyRollup(): Rollup {
  return {
    total: groupStats([]),
    groups: {},
    histogram: emptyHistogram(),
    stops: {},
    calls: 0,
    callErrors: 0,
    turns: { sum: 0, known: 0 },
    tokensOut: { sum: 0, known: 0 },
  };
}

/** Pass the run's success rule: two parts of a run may each infer another one. */
export function rollup(rows: readonly RolloutFacts[], context: MetricContext = {}): Rollup {
  const settled = { ...context, success: successRules(rows, context) };
  const result = emptyRollup();
  result.total = groupStats(rows, { ...settled, n: null });
  result.groups = Object.fromEntries([...allGroupStats(rows, settled)].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  result.histogram = histogram(select(rows, context.denominator).counted.map(({ reward }) => reward));
  for (const row of rows) {
    const stop = row.stop ?? 'unknown';
    result.stops[stop] = (result.stops[stop] ?? 0) + 1;
    result.calls += row.calls;
    result.callErrors += row.callErrors;
    addKnown(result.turns, row.turns);
    addKnown(result.tokensOut, row.tokensOut);
  }
  return result;
}

function addKnown(total: { sum: number; known: number }, value: number | null): void {
  if (value === null) return;
  total.sum += value;
  total.known += 1;
}

/** Of disjoint sets of rollouts, made by the same success rule and denominator. A group in both is one group in two parts. */
export function mergeRollups(a: Rollup, b: Rollup): Rollup {
  const groups = new Map(Object.entries(a.groups));
  for (const [name, stats] of Object.entries(b.groups)) {
    const first = groups.get(name);
    groups.set(name, first === undefined ? stats : mergeGroupStats(first, stats));
  }
  const stops = { ...a.stops };
  for (const [stop, count] of Object.entries(b.stops) as [StopReason, number][]) stops[stop] = (stops[stop] ?? 0) + count;
  return {
    total: mergeGroupStats(a.total, b.total),
    groups: Object.fromEntries([...groups].toSorted(([x], [y]) => (x < y ? -1 : 1))),
    histogram: mergeHistograms(a.histogram, b.histogram),
    stops,
    calls: a.calls + b.calls,
    callErrors: a.callErrors + b.callErrors,
    turns: { sum: a.turns.sum + b.turns.sum, known: a.turns.known + b.turns.known },
    tokensOut: { sum: a.tokensOut.sum + b.tokensOut.sum, known: a.tokensOut.known + b.tokensOut.known },
  };
}
