import { countedReward } from './denominators.ts';
import { type Figure, figure } from './figure.ts';
import { passAtK, passHatK } from './pass.ts';
import { remember } from './remember.ts';
import { type MetricContext, placesByGroup, type RolloutColumns } from './rollout-columns.ts';
import { isSuccess, successRules } from './success.ts';
import { ascending, mean } from './summary.ts';

/** Spread of rewards up to which a group carries no signal (docs/reference/metrics.md#canonical-metrics). */
export const ZERO_VARIANCE_TOLERANCE = 1e-6;

/** Enough to compute a group's metrics without its rollouts. All but `n` are over the counted rollouts (default: effective). */
export interface GroupStats {
  /** Rollouts received. */
  n: number;
  /** Rollouts counted. */
  scored: number;
  /** Counted rollouts that succeed. */
  c: number;
  sum: number;
  sumsq: number;
  min: number | null;
  max: number | null;
}

/** The statistics of each group by its key; rollouts without a group are in none. The success rule is inferred over all rollouts, not per group. */
export function groupStats(columns: RolloutColumns, context: MetricContext = {}): ReadonlyMap<string, GroupStats> {
  return remember(columns, context, 'groups', () => {
    const groups = [...placesByGroup(columns)];
    return new Map(groups.map(([group, places]) => [group, statsAt(columns, places, context)]));
  });
}

/** Sums in ascending order, so that any order of arrival gives the same bits. */
function statsAt(columns: RolloutColumns, places: readonly number[], context: MetricContext): GroupStats {
  const rules = successRules(columns, context);
  const stats: GroupStats = { n: places.length, scored: 0, c: 0, sum: 0, sumsq: 0, min: null, max: null };
  const rewards: number[] = [];
  for (const at of places) {
    const reward = countedReward(columns, at, context.denominator);
    if (reward === null) continue;
    rewards.push(reward);
    if (isSuccess(reward, rules.get(columns.environment[at] ?? null)!)) stats.c += 1;
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

/** From sum and sum of squares. A deviation below about 1e-8 of the rewards' size cannot be told from 0. */
export function stdFromStats(stats: GroupStats, ddof: 0 | 1): number | null {
  if (stats.scored <= ddof) return null;
  const centred = stats.sumsq - (stats.sum * stats.sum) / stats.scored;
  return stats.min === stats.max ? 0 : Math.sqrt(Math.max(0, centred) / (stats.scored - ddof));
}

export type ZeroVarianceKind = 'all-fail' | 'all-pass' | 'equal-other';

/** null when the group has a spread or fewer than two counted rollouts. */
export function zeroVarianceKind(group: GroupStats): ZeroVarianceKind | null {
  if (group.scored < 2 || group.max! - group.min! > ZERO_VARIANCE_TOLERANCE) return null;
  if (group.c === group.scored) return 'all-pass';
  return group.max! <= 0 ? 'all-fail' : 'equal-other';
}

/** Groups without signal / groups with at least two counted rollouts; with `kind`, only those of that kind. */
export function zeroVarianceFigure(groups: readonly GroupStats[], kind?: ZeroVarianceKind): Figure {
  let [eligible, hits] = [0, 0];
  for (const group of groups) {
    if (group.scored < 2) continue;
    eligible += 1;
    const found = zeroVarianceKind(group);
    if (found !== null && (kind === undefined || found === kind)) hits += 1;
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
