import { type Estimate, estimate, holm } from '../compare/tests.ts';
import type { Interval, SampleSums } from '../intervals.ts';
import { effectiveCount, wilsonInterval } from '../proportion.ts';
import jstat from 'jstat';
import { addMoments, type Moments, type Sides, squaresOf } from './moments.ts';

/** How much of a change of the mean reward something explains, with a 95 % interval and a two-sided p value. */
export interface Contribution {
  value: number;
  low: number;
  high: number;
  p: number;
  /** False: it changed for every rollout at this step, so that its effect cannot be told from others of the same step. */
  isSeparable: boolean;
}

export interface PropertyChange {
  /** The share of rollouts with the property. */
  share: { now: number; before: number; difference: number } & Interval;
  /** Reward with the property minus without it; null: one of both does not occur. */
  effect: number | null;
  /** Null also with fewer than two groups on a side, whose variance is not known. */
  contribution: Contribution | null;
}

/** Newcombe's interval (95 %) of `now − before` from the Wilson intervals of both shares (Newcombe 1998, method 10). `of` may be a fraction. */
export function newcombeInterval(before: { share: number; of: number }, now: { share: number; of: number }): Interval {
  const [a, b] = [before.share, now.share];
  const [first, other] = [wilsonInterval(a, before.of), wilsonInterval(b, now.of)];
  return {
    low: b - a - Math.hypot(b - other.low, first.high - a),
    high: b - a + Math.hypot(other.high - b, a - first.low),
  };
}

/**
 * How the share of a property changed and how much of the change of the reward that explains. Rollouts of a group are not independent: the
 * interval of the share counts effective rollouts, and both variances are clustered by group (docs/reference/metrics.md#moves). Null without
 * rewards on one side.
 */
export function changeOf({ now, before }: Sides): PropertyChange | null {
  const [to, from] = [sideOf(now), sideOf(before)];
  if (to.moments.n === 0 || from.moments.n === 0) return null;
  const [first, other] = [shareOf(from), shareOf(to)];
  const difference = other.share - first.share;
  const effect = effectOf(to.moments, from.moments);
  return {
    share: { now: other.share, before: first.share, difference, ...newcombeInterval(first, other) },
    effect: effect?.value ?? null,
    contribution: effect && contributionOf(to, from, difference, effect),
  };
}

interface Side {
  moments: Moments;
  /** Environments with a reward. */
  strata: number;
  /** Sum over groups of `(n1 − share·n)²`, with the share of their environment: how many rollouts are of which environment is no chance. */
  squares: number;
}

function sideOf(strata: readonly Moments[]): Side {
  const known = strata.filter(({ n }) => n > 0);
  const squares = known.reduce((sum, one) => sum + squaresOf(one, { n1: 1, n: -one.n1 / one.n }), 0);
  return { moments: addMoments(known), strata: known.length, squares };
}

const Z = 1.959_963_984_540_054;

/** `of`: effective rollouts. With few groups their variance is uncertain itself: fewer rollouts count (Korn and Graubard 1998). */
function shareOf({ moments: { n, n1, groups }, squares }: Side): { share: number; of: number } {
  const share = n1 / n;
  const of = effectiveCount(share, { scored: n, clusters: groups, squares });
  return { share, of: groups < 2 || of === n ? of : of * (Z / jstat.jStat.studentt.inv(0.975, groups - 1)) ** 2 };
}

interface Effect {
  value: number;
  variance: number;
  isSeparable: boolean;
}

/** The variance of a product of independent estimates (Goodman 1960), with Student's t. */
function contributionOf(now: Side, before: Side, difference: number, effect: Effect): Contribution | null {
  const sides = [now, before];
  if (sides.some(({ moments }) => moments.groups < 2)) return null;
  const [a, b] = sides.map(({ squares, moments }) => squares / moments.n ** 2) as [number, number];
  const strata = now.strata + before.strata;
  const spread = (a + b) * correction([now.moments, before.moments], strata);
  const variance = difference ** 2 * effect.variance + effect.value ** 2 * spread + effect.variance * spread;
  // As Welch and Satterthwaite: a step has far fewer groups than its baseline.
  const [free, other] = sides.map((side) => Math.max(1, side.moments.groups - side.strata)) as [number, number];
  const df =
    a + b === 0 ? Math.max(1, now.moments.groups + before.moments.groups - strata) : (a + b) ** 2 / (a ** 2 / free + b ** 2 / other);
  return { ...known(estimate(difference * effect.value, Math.sqrt(variance), df)), isSeparable: effect.isSeparable };
}

const known = ({ difference, low, high, p }: Estimate) => ({ value: difference, low: low!, high: high!, p: p! });

/** Of a variance clustered by group with `coefficients` in the regression: `G/(G−1) · (N−1)/(N−K)`, as `statsmodels` has it. */
function correction(sides: readonly Moments[], coefficients: number): number {
  const groups = sides.reduce((sum, side) => sum + side.groups, 0);
  const rollouts = sides.reduce((sum, { n }) => sum + n, 0);
  return rollouts <= coefficients ? 1 : (groups / (groups - 1)) * ((rollouts - 1) / (rollouts - coefficients));
}

/**
 * The coefficient of the property in the least squares of the reward on the property and the side, with a variance clustered by group
 * (`statsmodels` `OLS(…).fit(cov_type="cluster")`; Liang and Zeger 1986): rollouts of a step are compared with others of the same step. If no
 * side has rollouts both with and without it, both sides together.
 */
function effectOf(now: Moments, before: Moments): Effect | null {
  const apart = [now, before];
  const isSeparable = apart.some((side) => weightOf(side) > 0);
  const strata = isSeparable ? apart : [addMoments(apart)];
  const weight = strata.reduce((sum, one) => sum + weightOf(one), 0);
  if (weight === 0) return null;
  const value = strata.reduce((sum, one) => sum + one.s1 - (one.n1 / one.n) * one.s, 0) / weight;
  const squares = strata.reduce((sum, one) => sum + squaresOfScores(one, value), 0);
  const variance = (squares / weight ** 2) * correction(apart, strata.length + 1);
  return { value, variance: now.groups + before.groups < 2 ? 0 : variance, isSeparable };
}

/** Sum of squares of the property around its mean: what the side weighs in the coefficient. */
const weightOf = ({ n, n1 }: Moments): number => (n === 0 ? 0 : (n1 * (n - n1)) / n);

/** Sum over groups of the squared sum of `(property − its mean)·residual`. */
function squaresOfScores(moments: Moments, effect: number): number {
  const { n, s, n1 } = moments;
  const [share, mean] = [n1 / n, s / n];
  return squaresOf(moments, { s1: 1, s: -share, n1: -mean - effect * (1 - 2 * share), n: share * (mean - effect * share) });
}

export interface TaskShare {
  /** Rollouts with a reward at the step, and before. */
  now: number;
  before: number;
  /** Rewards of the task at all earlier steps, each minus the mean of its step. */
  history: SampleSums & {
    /** Its groups, and the sum over them of `(sum of its rewards)² / (number of its rewards)`. */
    visits: number;
    visitSquares: number;
  };
}

/**
 * What the choice of tasks explains: the sum over tasks of (share now − share before) × (what the task earns more than others of its step).
 * Tasks without an earlier step count as average. The variance within tasks is the same for all: that between the visits of a task, at least
 * that between its rollouts. Null without rewards on one side, or if no task was played twice.
 */
export function mixOf(tasks: readonly TaskShare[]): (Contribution & { changed: number; unseen: number }) | null {
  const total = (of: (task: TaskShare) => number) => tasks.reduce((sum, task) => sum + of(task), 0);
  const [now, before] = [total((task) => task.now), total((task) => task.before)];
  if (now === 0 || before === 0) return null;
  const seen = tasks.filter(({ history }) => history.count > 0);
  const changeOfShare = (task: TaskShare) => task.now / now - task.before / before;
  const variance = varianceWithin(seen.map(({ history }) => history));
  if (variance === null) return null;
  const value = seen.reduce((sum, task) => sum + (changeOfShare(task) * task.history.sum) / task.history.count, 0);
  const squares = seen.reduce((sum, task) => sum + changeOfShare(task) ** 2 / task.history.count, 0);
  return {
    ...known(estimate(value, Math.sqrt(variance.value * squares), variance.df)),
    isSeparable: true,
    changed: total((task) => Math.abs(changeOfShare(task))) / 2,
    unseen: tasks.filter(({ now: rollouts, history }) => rollouts > 0 && history.count === 0).length,
  };
}

/** The variance of a reward around that of its task: the larger one of that between visits and that between rollouts. */
function varianceWithin(tasks: readonly TaskShare['history'][]): { value: number; df: number } | null {
  const pooled = (units: (task: TaskShare['history']) => number, squares: (task: TaskShare['history']) => number) => {
    const df = tasks.reduce((sum, task) => sum + units(task) - 1, 0);
    return { df, value: df === 0 ? 0 : tasks.reduce((sum, task) => sum + Math.max(0, squares(task) - task.sum ** 2 / task.count), 0) / df };
  };
  const rollouts = pooled(
    ({ count }) => count,
    ({ sumOfSquares }) => sumOfSquares,
  );
  const visits = pooled(
    (task) => task.visits,
    ({ visitSquares }) => visitSquares,
  );
  if (rollouts.df === 0) return null;
  return visits.df > 0 && visits.value > rollouts.value ? visits : rollouts;
}

/** Causes that explain at least this share of the change are likely, if chance is excluded. */
const MIN_EXPLAINED = 0.2;

/**
 * Ranks causes by the part of `difference` that each explains; parts overlap. One that is not separable counts half, because only its time
 * speaks for it, and so does a symptom, which others can cause. A cause is likely if it explains a fifth or more and its p value, corrected for the number of causes (Holm), is below 0.05.
 */
export function rankCauses<Cause extends { contribution: Contribution | null; isSymptom?: boolean }>(
  causes: readonly Cause[],
  difference: number,
): { cause: Cause; explained: number | null; isLikely: boolean }[] {
  const corrected = holm(causes.map(({ contribution }) => contribution?.p ?? null));
  // Rounded: equal parts that are summed in another order stay in the given order.
  const weight = ({ contribution, isSymptom }: Cause) =>
    contribution === null || difference === 0
      ? -Number.MAX_VALUE
      : Number(((contribution.value / difference) * (contribution.isSeparable && !isSymptom ? 1 : 0.5)).toFixed(9));
  return causes
    .map((cause, at) => {
      const explained = cause.contribution === null || difference === 0 ? null : cause.contribution.value / difference;
      const isLikely = explained !== null && explained >= MIN_EXPLAINED && (corrected[at] ?? 1) < 0.05;
      return { cause, explained, isLikely };
    })
    .toSorted((a, b) => Number(b.isLikely) - Number(a.isLikely) || weight(b.cause) - weight(a.cause));
}
