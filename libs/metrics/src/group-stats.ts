import { countedReward } from './denominators.ts';
import type { Figure, MetricContext, RolloutFacts, SuccessRule } from './facts.ts';
import { figure } from './facts.ts';
import { passAtK, passHatK } from './pass.ts';
import { remember } from './remember.ts';
import { isSuccess, successRules } from './success.ts';
import { ascending, mean } from './summary.ts';
import { groupBy } from './group-by.ts';

/** Spread of rewards up to which a group carries no signal (dashboard.md 3.1). */
export const ZERO_VARIANCE_TOLERANCE = 1e-6;

/**
 * What is enough to compute a group's metrics without its rollouts. All but `n` are over the counted rollouts (default: scored).
 */
export interface GroupStats {
  /** Rollouts received. */
  n: number;
  /** Size that the group should have; null = not known. */
  nExpected: number | null;
  /** Rollouts counted. */
  scored: number;
  /** Counted rollouts that succeed. */
  c: number;
  sum: number;
  sumsq: number;
  min: number | null;
  max: number | null;
}

export function emptyGroup(nExpected: number | null = null): GroupStats {
  return { n: 0, nExpected, scored: 0, c: 0, sum: 0, sumsq: 0, min: null, max: null };
}

/** Sums over one group (or any set of rollouts). Summed in ascending order, so that any order of arrival gives the same bits. */
export function groupStats(rows: readonly RolloutFacts[], context: MetricContext = {}): GroupStats {
  return statsOf(rows, context, successRules(rows, context));
}

function statsOf(rows: readonly RolloutFacts[], context: MetricContext, rules: ReadonlyMap<string | null, SuccessRule>): GroupStats {
  const stats = { ...emptyGroup(context.n ?? null), n: rows.length };
  const rewards: number[] = [];
  for (const row of rows) {
    const reward = countedReward(row, context.denominator);
    if (reward === null) continue;
    rewards.push(reward);
    if (isSuccess(reward, rules.get(row.environment)!)) stats.c += 1;
  }
  for (const reward of ascending(rewards)) {
    stats.scored += 1;
    stats.sum += reward;
    stats.sumsq += reward * reward;
    stats.min ??= reward;
    stats.max = reward;
  }
  return stats;
}

/** One entry a group; rollouts without a group are in none. The success rule is inferred over all rows, not group by group. */
export function allGroupStats(rows: readonly RolloutFacts[], context: MetricContext = {}): ReadonlyMap<string, GroupStats> {
  return remember(rows, context, 'groups', () => groupStatsOf(rows, context));
}

function groupStatsOf(rows: readonly RolloutFacts[], context: MetricContext): Map<string, GroupStats> {
  const rules = successRules(rows, context);
  const stats = new Map<string, GroupStats>();
  for (const [group, own] of groupBy(rows, (row) => row.group)) if (group !== null) stats.set(group, statsOf(own, context, rules));
  return stats;
}

/** Of two disjoint parts of one group. */
export function mergeGroupStats(a: GroupStats, b: GroupStats): GroupStats {
  return {
    n: a.n + b.n,
    nExpected: a.nExpected === null || b.nExpected === null ? (a.nExpected ?? b.nExpected) : Math.max(a.nExpected, b.nExpected),
    scored: a.scored + b.scored,
    c: a.c + b.c,
    sum: a.sum + b.sum,
    sumsq: a.sumsq + b.sumsq,
    min: a.min === null || b.min === null ? (a.min ?? b.min) : Math.min(a.min, b.min),
    max: a.max === null || b.max === null ? (a.max ?? b.max) : Math.max(a.max, b.max),
  };
}

/** Mean over groups with at least k counted rollouts; the figure says how many groups that are. */
export function passAtKFigure(groups: readonly GroupStats[], k: number): Figure {
  return overGroups(groups, (group) => passAtK(group.scored, group.c, k));
}

export function passHatKFigure(groups: readonly GroupStats[], k: number): Figure {
  return overGroups(groups, (group) => passHatK(group.scored, group.c, k));
}

/** avg@n: the mean of group means. */
export function promptWeightedMean(groups: readonly GroupStats[]): Figure {
  return overGroups(groups, (group) => (group.scored === 0 ? null : group.sum / group.scored));
}

function overGroups(groups: readonly GroupStats[], valueOf: (group: GroupStats) => number | null): Figure {
  const values: number[] = [];
  for (const group of groups) {
    const value = valueOf(group);
    if (value !== null) values.push(value);
  }
  // Ascending: the order of groups must not reach the last bit.
  return figure(mean(ascending(values)), values.length, groups.length);
}

/** From sum and sum of squares: about 1e-8 of the rewards' size is the least deviation that it tells from 0. */
export function stdFromStats(stats: GroupStats, ddof: 0 | 1): number | null {
  if (stats.scored <= ddof) return null;
  const centred = stats.sumsq - (stats.sum * stats.sum) / stats.scored;
  return stats.min === stats.max ? 0 : Math.sqrt(Math.max(0, centred) / (stats.scored - ddof));
}

export type ZeroVarianceKind = 'all-fail' | 'all-pass' | 'equal-other';

/** null when the group has a spread or fewer than two counted rollouts; the split is decision 14.6. */
export function zeroVarianceKind(group: GroupStats): ZeroVarianceKind | null {
  if (group.scored < 2 || group.max! - group.min! > ZERO_VARIANCE_TOLERANCE) return null;
  if (group.c === group.scored) return 'all-pass';
  return group.max! <= 0 ? 'all-fail' : 'equal-other';
}

/** Groups without signal / groups with at least two counted rollouts; with `kind`, those of that kind alone. */
export function zeroVarianceFigure(groups: readonly GroupStats[], kind?: ZeroVarianceKind): Figure {
  let [eligible, hits] = [0, 0];
  for (const group of groups) {
    if (group.scored < 2) continue;
    eligible += 1;
    const own = zeroVarianceKind(group);
    if (own !== null && (kind === undefined || own === kind)) hits += 1;
  }
  return figure(eligible === 0 ? null : hits / eligible, eligible, groups.length);
}

export type Solved = 'none' | 'some' | 'all';

/** Groups of which none, some or all counted rollouts succeed / groups with a counted rollout. */
export function solvedFigure(groups: readonly GroupStats[], which: Solved): Figure {
  let [counted, hits] = [0, 0];
  for (const { c, scored } of groups) {
    if (scored === 0) continue;
    counted += 1;
    if (which === (c === 0 ? 'none' : c === scored ? 'all' : 'some')) hits += 1;
  }
  return figure(counted === 0 ? null : hits / counted, counted, groups.length);
}
