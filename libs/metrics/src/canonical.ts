import { type StopReason, TRUNCATED_STOPS } from '@palestra/protocol';
import { select } from './denominators.ts';
import { type Figure, figure } from './figure.ts';
import {
  type GroupStats,
  groupStats,
  passAtKFigure,
  passHatKFigure,
  promptWeightedMean,
  type Solved,
  solvedFigure,
  zeroVarianceFigure,
  type ZeroVarianceKind,
} from './group-stats.ts';
import { bootstrapInterval, type Interval, studentInterval } from './intervals.ts';
import { passAtK as passOfGroup } from './pass.ts';
import { remember } from './remember.ts';
import { countOf, type MetricContext, type RolloutColumns, scoreOf } from './rollout-columns.ts';
import { isSuccess, successRules } from './success.ts';
import { ascending, max, mean, min, percentileOfSorted, std } from './summary.ts';

/** The canonical metrics (docs/reference/metrics.md#canonical-metrics). The order of rollouts changes no figure. */

const TRUNCATED: ReadonlySet<StopReason> = new Set(TRUNCATED_STOPS);

const selected = (columns: RolloutColumns, context: MetricContext) =>
  remember(columns, context, 'selected', () => select(columns, context.denominator));

/** Counted rewards, ascending: the order of arrival must not change the last bit of a sum. */
const sortedRewards = (columns: RolloutColumns, context: MetricContext) =>
  remember(columns, context, 'rewards', () => ascending(selected(columns, context).rewards));

function overRewards(columns: RolloutColumns, context: MetricContext, reduce: (rewards: number[]) => number | null): Figure {
  const rewards = sortedRewards(columns, context);
  const { of, note } = selected(columns, context);
  return figure(reduce(rewards), rewards.length, of, note);
}

/** Sample-weighted. */
export const rewardMean = (columns: RolloutColumns, context: MetricContext = {}) => overRewards(columns, context, mean);
export const rewardMin = (columns: RolloutColumns, context: MetricContext = {}) => overRewards(columns, context, min);
export const rewardMax = (columns: RolloutColumns, context: MetricContext = {}) => overRewards(columns, context, max);
/** `ddof` of the context; default 1. */
export const rewardStd = (columns: RolloutColumns, context: MetricContext = {}) =>
  overRewards(columns, context, (rewards) => std(rewards, context.ddof ?? 1));
/** `q` in [0, 1]. */
export const rewardPercentile = (columns: RolloutColumns, q: number, context: MetricContext = {}) =>
  overRewards(columns, context, (rewards) => percentileOfSorted(rewards, q));

export function successRate(columns: RolloutColumns, context: MetricContext = {}): Figure {
  const { places, rewards, of, note } = selected(columns, context);
  const rules = successRules(columns, context);
  const successes = places.filter((at, i) => isSuccess(rewards[i]!, rules.get(columns.environment[at] ?? null)!)).length;
  return figure(places.length === 0 ? null : successes / places.length, places.length, of, note);
}

/** A figure over groups. The note says how many rollouts are in no group, and when nulls were counted as 0. */
function groupFigure(columns: RolloutColumns, context: MetricContext, compute: (groups: readonly GroupStats[]) => Figure): Figure {
  const groups = allGroups(columns, context);
  const grouped = groups.reduce((total, { n }) => total + n, 0);
  const result = compute(groups);
  const notes = [
    grouped < countOf(columns) ? `${countOf(columns) - grouped} of ${countOf(columns)} rollouts have no group` : null,
    context.denominator === 'all' ? selected(columns, context).note : null,
  ];
  return figure(result.value, result.denominator, result.of, notes.filter((note) => note !== null).join('; '));
}

const allGroups = (columns: RolloutColumns, context: MetricContext): readonly GroupStats[] =>
  remember(columns, context, 'all groups', () => [...groupStats(columns, context).values()]);

/** Counts groups, like pass^k, avg@n and the zero-variance rate. */
export const passAtK = (columns: RolloutColumns, k: number, context: MetricContext = {}) =>
  groupFigure(columns, context, (groups) => passAtKFigure(groups, k));
export const passHatK = (columns: RolloutColumns, k: number, context: MetricContext = {}) =>
  groupFigure(columns, context, (groups) => passHatKFigure(groups, k));
/** avg@n, prompt-weighted: the mean of group means. `rewardMean` is the sample-weighted one. */
export const avgAtN = (columns: RolloutColumns, context: MetricContext = {}) => groupFigure(columns, context, promptWeightedMean);
export const zeroVariance = (columns: RolloutColumns, context: MetricContext = {}, kind?: ZeroVarianceKind) =>
  groupFigure(columns, context, (groups) => zeroVarianceFigure(groups, kind));

/** Groups of which none, some or all rollouts succeed. */
export const solved = (columns: RolloutColumns, which: Solved, context: MetricContext = {}) =>
  groupFigure(columns, context, (groups) => solvedFigure(groups, which));

/** 95 %, Student-t on group means; null for fewer than two groups. */
export function avgInterval(columns: RolloutColumns, context: MetricContext = {}): Interval | null {
  return remember(columns, context, 'avg interval', () => {
    const means = allGroups(columns, context)
      .filter(({ scored }) => scored > 0)
      .map((group) => group.sum / group.scored);
    return studentInterval(ascending(means));
  });
}

/** 95 %, group bootstrap. */
export function passAtKInterval(columns: RolloutColumns, k: number, context: MetricContext = {}): Interval | null {
  const values = allGroups(columns, context).map(({ scored, c }) => passOfGroup(scored, c, k));
  return bootstrapInterval(
    values.filter((value) => value !== null),
    context.bootstrapDraws,
    context.bootstrapSeed,
  );
}

/** One end of an interval as a figure over groups. */
export function intervalFigure(
  columns: RolloutColumns,
  context: MetricContext,
  interval: Interval | null,
  end: keyof Interval,
  k = 1,
): Figure {
  const groups = allGroups(columns, context);
  const eligible = groups.filter((group) => group.scored >= k).length;
  return figure(interval?.[end] ?? null, eligible, groups.length, interval === null ? 'needs two groups' : null);
}

/** Rollouts that hit a limit, of those whose stop is known. */
export function truncatedRate({ stop }: RolloutColumns): Figure {
  const known = stop.filter((reason) => reason !== null && reason !== 'unknown');
  const truncated = known.filter(isTruncated).length;
  return figure(known.length === 0 ? null : truncated / known.length, known.length, stop.length);
}

export function isTruncated(stop: StopReason | null): boolean {
  return stop !== null && TRUNCATED.has(stop);
}

/** Failed tool results / tool results; the figure counts results, not rollouts. */
export function toolErrorRate({ calls, callErrors }: RolloutColumns): Figure {
  const results = calls.reduce((total, count) => total + count, 0);
  const failed = callErrors.reduce((total, count) => total + count, 0);
  return figure(results === 0 ? null : failed / results, results, results);
}

/** Mean of a count that may be unknown, over the rollouts that have it. */
export function meanKnown(column: readonly (number | null)[]): Figure {
  const values = column.filter((value) => value !== null && Number.isFinite(value)) as number[];
  return figure(mean(ascending(values)), values.length, column.length);
}

export interface Advantage {
  /** `r - mean` */
  centred: number;
  /** `(r - mean) / (std + 1e-6)`, ddof 1; null for a group of one, 0 where the group has no spread. */
  normalised: number | null;
}

/** Of the rollouts of one group, from their rewards; null for those that are unscored. */
export function advantages(rewards: readonly (number | null)[]): (Advantage | null)[] {
  const scored = ascending(rewards.map(scoreOf).filter((reward) => reward !== null));
  const centre = mean(scored);
  const deviation = std(scored, 1);
  return rewards.map((reward) => {
    if (scoreOf(reward) === null) return null;
    const centred = reward! - centre!;
    return { centred, normalised: deviation === null ? null : centred / (deviation + 1e-6) };
  });
}

/** How many rollouts the denominator counts. */
export function denominatorFigure(columns: RolloutColumns, denominator: 'scored' | 'effective'): Figure {
  const { rewards, of } = select(columns, denominator);
  return figure(rewards.length, of, of);
}

export function groupsFigure(columns: RolloutColumns, context: MetricContext = {}): Figure {
  const groups = groupStats(columns, context).size;
  return figure(groups, groups, groups);
}
