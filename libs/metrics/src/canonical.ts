import { type StopReason, TRUNCATED_STOPS } from '@palestra/protocol';
import { byGroup, type Counted, groupCount, select } from './denominators.ts';
import { type Figure, figure, type MetricContext, type RolloutFacts } from './facts.ts';
import {
  allGroupStats,
  type GroupStats,
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
import { isSuccess, successRules } from './success.ts';
import { ascending, max, mean, min, percentileOfSorted, std } from './summary.ts';

/** The canonical metrics (dashboard.md 3.1): rows in, figures with their denominators out; the order of rows never matters. */

const TRUNCATED: ReadonlySet<StopReason> = new Set(TRUNCATED_STOPS);

const selected = (rows: readonly RolloutFacts[], context: MetricContext) =>
  remember(rows, context, 'selected', () => select(rows, context.denominator));

/** Counted rewards, ascending: the order of arrival must not reach the last bit of a sum. */
function rewardsOf(rows: readonly RolloutFacts[], context: MetricContext) {
  return remember(rows, context, 'rewards', () => {
    const { counted, of, note } = selected(rows, context);
    return { rewards: ascending(counted.map(({ reward }) => reward)), of, note };
  });
}

function overRewards(rows: readonly RolloutFacts[], context: MetricContext, reduce: (rewards: number[]) => number | null): Figure {
  const { rewards, of, note } = rewardsOf(rows, context);
  return figure(reduce(rewards), rewards.length, of, note);
}

/** Sample-weighted. */
export const rewardMean = (rows: readonly RolloutFacts[], context: MetricContext = {}) => overRewards(rows, context, mean);
export const rewardMin = (rows: readonly RolloutFacts[], context: MetricContext = {}) => overRewards(rows, context, min);
export const rewardMax = (rows: readonly RolloutFacts[], context: MetricContext = {}) => overRewards(rows, context, max);
/** `ddof` of the context, 1 unless told. */
export const rewardStd = (rows: readonly RolloutFacts[], context: MetricContext = {}) =>
  overRewards(rows, context, (rewards) => std(rewards, context.ddof ?? 1));
/** `q` in [0, 1]. */
export const rewardPercentile = (rows: readonly RolloutFacts[], q: number, context: MetricContext = {}) =>
  overRewards(rows, context, (rewards) => percentileOfSorted(rewards, q));

export function successRate(rows: readonly RolloutFacts[], context: MetricContext = {}): Figure {
  const { counted, of, note } = selected(rows, context);
  const rules = successRules(rows, context);
  const successes = counted.filter(({ row, reward }) => isSuccess(reward, rules.get(row.environment)!)).length;
  return figure(counted.length === 0 ? null : successes / counted.length, counted.length, of, note);
}

/** A figure over groups; says how many rollouts are in none, and when nulls were counted as 0. */
function groupFigure(rows: readonly RolloutFacts[], context: MetricContext, compute: (groups: GroupStats[]) => Figure): Figure {
  const result = compute([...allGroupStats(rows, context).values()]);
  const alone = remember(rows, context, 'alone', () => rows.filter((row) => row.group === null).length);
  const notes = [
    alone > 0 ? `${alone} of ${rows.length} rollouts have no group` : null,
    context.denominator === 'all' ? selected(rows, context).note : null,
  ];
  return figure(result.value, result.denominator, result.of, notes.filter((note) => note !== null).join('; '));
}

/** Counts groups, like pass^k, avg@n and the zero-variance rate. */
export const passAtK = (rows: readonly RolloutFacts[], k: number, context: MetricContext = {}) =>
  groupFigure(rows, context, (groups) => passAtKFigure(groups, k));
export const passHatK = (rows: readonly RolloutFacts[], k: number, context: MetricContext = {}) =>
  groupFigure(rows, context, (groups) => passHatKFigure(groups, k));
/** avg@n, prompt-weighted: the mean of group means. `rewardMean` is the sample-weighted one. */
export const avgAtN = (rows: readonly RolloutFacts[], context: MetricContext = {}) => groupFigure(rows, context, promptWeightedMean);
export const zeroVariance = (rows: readonly RolloutFacts[], context: MetricContext = {}, kind?: ZeroVarianceKind) =>
  groupFigure(rows, context, (groups) => zeroVarianceFigure(groups, kind));

/** Groups of which none, some or all rollouts succeed. */
export const solved = (rows: readonly RolloutFacts[], which: Solved, context: MetricContext = {}) =>
  groupFigure(rows, context, (groups) => solvedFigure(groups, which));

/** 95 %, Student-t on group means; null for fewer than two groups. */
export function avgInterval(rows: readonly RolloutFacts[], context: MetricContext = {}): Interval | null {
  return remember(rows, context, 'avg interval', () => {
    const means = [...allGroupStats(rows, context).values()].filter(({ scored }) => scored > 0).map((group) => group.sum / group.scored);
    return studentInterval(ascending(means));
  });
}

/** 95 %, group bootstrap. */
export function passAtKInterval(rows: readonly RolloutFacts[], k: number, context: MetricContext = {}): Interval | null {
  const values = [...allGroupStats(rows, context).values()].map(({ scored, c }) => passOfGroup(scored, c, k));
  return bootstrapInterval(
    values.filter((value) => value !== null),
    context.bootstrapDraws,
    context.bootstrapSeed,
  );
}

/** One end of an interval as a figure over groups. */
export function intervalFigure(
  rows: readonly RolloutFacts[],
  context: MetricContext,
  interval: Interval | null,
  end: keyof Interval,
  k = 1,
): Figure {
  const groups = [...allGroupStats(rows, context).values()];
  const eligible = groups.filter((group) => group.scored >= k).length;
  return figure(interval?.[end] ?? null, eligible, groups.length, interval === null ? 'needs two groups' : null);
}

/** Rollouts that hit a limit, of those whose stop is known. */
export function truncatedRate(rows: readonly RolloutFacts[]): Figure {
  const known = rows.filter((row) => row.stop !== null && row.stop !== 'unknown');
  const truncated = known.filter((row) => TRUNCATED.has(row.stop!)).length;
  return figure(known.length === 0 ? null : truncated / known.length, known.length, rows.length);
}

export function isTruncated(row: Pick<RolloutFacts, 'stop'>): boolean {
  return row.stop !== null && TRUNCATED.has(row.stop);
}

/** Failed tool results / tool results; the figure counts results, not rollouts. */
export function toolErrorRate(rows: readonly RolloutFacts[]): Figure {
  const results = rows.reduce((total, row) => total + row.calls, 0);
  const failed = rows.reduce((total, row) => total + row.callErrors, 0);
  return figure(results === 0 ? null : failed / results, results, results);
}

/** Mean of a count that may be unknown, over the rollouts that have it. */
export function meanKnown(rows: readonly RolloutFacts[], valueOf: (row: RolloutFacts) => number | null): Figure {
  const values = rows.map(valueOf).filter((value) => value !== null && Number.isFinite(value)) as number[];
  return figure(mean(ascending(values)), values.length, rows.length);
}

export interface Advantage {
  /** `r - mean_g` */
  centred: number;
  /** `(r - mean_g) / (std_g + 1e-6)`, std with the context's ddof; equals 0 where the group has no spread. */
  normalised: number | null;
}

/** By rollout id, for counted rollouts of a group; a group of one has no deviation (ddof 1) and so no normalised advantage. */
export function advantages(rows: readonly RolloutFacts[], context: MetricContext = {}): Map<string, Advantage> {
  const result = new Map<string, Advantage>();
  for (const group of byGroup(select(rows, context.denominator).counted).values()) addAdvantages(result, group, context.ddof ?? 1);
  return result;
}

function addAdvantages(result: Map<string, Advantage>, group: Counted[], ddof: 0 | 1): void {
  const rewards = group.map(({ reward }) => reward).toSorted((a, b) => a - b);
  const centre = mean(rewards)!;
  const deviation = std(rewards, ddof);
  for (const { row, reward } of group) {
    const centred = reward - centre;
    result.set(row.id, { centred, normalised: deviation === null ? null : centred / (deviation + 1e-6) });
  }
}

/** How much of the set each denominator holds. */
export function denominatorFigure(rows: readonly RolloutFacts[], denominator: 'scored' | 'effective'): Figure {
  return figure(select(rows, denominator).counted.length, rows.length, rows.length);
}

export function groupsFigure(rows: readonly RolloutFacts[]): Figure {
  const groups = groupCount(rows);
  return figure(groups, groups, groups);
}
