import { holm } from '../compare/tests.ts';
import type { Interval, SampleSums } from '../intervals.ts';
import { wilsonInterval } from '../proportion.ts';
import jstat from 'jstat';

/** Rewards of the rollouts of a step, and of those before it. */
export interface Sides {
  now: SampleSums;
  before: SampleSums;
}

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
  contribution: Contribution | null;
}

const Z = 1.959_963_984_540_054;

/** Newcombe's interval (95 %) of `now − before` from the Wilson intervals of both shares (Newcombe 1998, method 10). */
export function newcombeInterval(before: { count: number; of: number }, now: { count: number; of: number }): Interval {
  const [a, b] = [before.count / before.of, now.count / now.of];
  const [first, other] = [wilsonInterval(a, before.of), wilsonInterval(b, now.of)];
  return {
    low: b - a - Math.hypot(b - other.low, first.high - a),
    high: b - a + Math.hypot(other.high - b, a - first.low),
  };
}

/** How the share of a property changed and how much of the change of the reward that explains. Null without rewards on one side. */
export function changeOf(all: Sides, having: Sides): PropertyChange | null {
  if (all.now.count === 0 || all.before.count === 0) return null;
  const [now, before] = [having.now.count / all.now.count, having.before.count / all.before.count];
  const interval = newcombeInterval({ count: having.before.count, of: all.before.count }, { count: having.now.count, of: all.now.count });
  const difference = now - before;
  const effect = effectOf(all, having);
  const variance = (now * (1 - now)) / all.now.count + (before * (1 - before)) / all.before.count;
  return {
    share: { now, before, difference, ...interval },
    effect: effect?.value ?? null,
    // The variance of a product of independent estimates (Goodman 1960).
    contribution: effect && {
      ...normal(difference * effect.value, difference ** 2 * effect.variance + effect.value ** 2 * variance + effect.variance * variance),
      isSeparable: effect.isSeparable,
    },
  };
}

/**
 * The coefficient of the property in the least squares of the reward on the property and the side (`statsmodels` `OLS`): rollouts of a step
 * are compared with others of the same step. If no side has rollouts both with and without it, both sides together.
 */
function effectOf(all: Sides, having: Sides): { value: number; variance: number; isSeparable: boolean } | null {
  const strata = (['now', 'before'] as const).map((side) => stratum(all[side], having[side]));
  const isSeparable = strata.some(({ weight }) => weight > 0);
  const used = isSeparable ? strata : [stratum(add(all.now, all.before), add(having.now, having.before))];
  const weight = used.reduce((sum, one) => sum + one.weight, 0);
  if (weight === 0) return null;
  const value = used.reduce((sum, one) => sum + one.weight * one.difference, 0) / weight;
  const rollouts = all.now.count + all.before.count;
  const df = rollouts - used.length - 1;
  const residual = Math.max(0, used.reduce((sum, one) => sum + one.squares, 0) - value ** 2 * weight);
  return { value, variance: df < 1 ? 0 : residual / df / weight, isSeparable };
}

/** `squares`: around the mean of the stratum. `weight`: what a stratum weighs in a common difference. */
function stratum(all: SampleSums, having: SampleSums): { difference: number; weight: number; squares: number } {
  const without = { count: all.count - having.count, sum: all.sum - having.sum };
  const weight = all.count === 0 ? 0 : (having.count * without.count) / all.count;
  return {
    weight,
    difference: weight === 0 ? 0 : having.sum / having.count - without.sum / without.count,
    squares: all.count === 0 ? 0 : all.sumOfSquares - all.sum ** 2 / all.count,
  };
}

const add = (a: SampleSums, b: SampleSums): SampleSums => ({
  count: a.count + b.count,
  sum: a.sum + b.sum,
  sumOfSquares: a.sumOfSquares + b.sumOfSquares,
});

function normal(value: number, variance: number): Omit<Contribution, 'isSeparable'> {
  const error = Math.sqrt(variance);
  const p = error === 0 ? (value === 0 ? 1 : 0) : Math.max(0, 1 - jstat.jStat.chisquare.cdf((value / error) ** 2, 1));
  return { value, low: value - Z * error, high: value + Z * error, p };
}

export interface TaskShare {
  /** Rollouts with a reward at the step, and before. */
  now: number;
  before: number;
  /** Rewards of the task at all earlier steps, each minus the mean of its step. */
  history: SampleSums;
}

/**
 * What the choice of tasks explains: the sum over tasks of (share now − share before) × (what the task earns more than others of its step).
 * Tasks without an earlier step count as average. The variance within tasks is the same for all. Null without rewards on one side.
 */
export function mixOf(tasks: readonly TaskShare[]): (Contribution & { changed: number; unseen: number }) | null {
  const total = (of: (task: TaskShare) => number) => tasks.reduce((sum, task) => sum + of(task), 0);
  const [now, before] = [total((task) => task.now), total((task) => task.before)];
  if (now === 0 || before === 0) return null;
  const known = tasks.filter(({ history }) => history.count > 0);
  const changeOfShare = (task: TaskShare) => task.now / now - task.before / before;
  const squares = ({ history }: TaskShare) => Math.max(0, history.sumOfSquares - history.sum ** 2 / history.count);
  const df = known.reduce((sum, { history }) => sum + history.count - 1, 0);
  const within = df === 0 ? 0 : known.reduce((sum, task) => sum + squares(task), 0) / df;
  const value = known.reduce((sum, task) => sum + (changeOfShare(task) * task.history.sum) / task.history.count, 0);
  const variance = known.reduce((sum, task) => sum + (changeOfShare(task) ** 2 * within) / task.history.count, 0);
  return {
    ...normal(value, variance),
    isSeparable: true,
    changed: total((task) => Math.abs(changeOfShare(task))) / 2,
    unseen: tasks.filter(({ now: rollouts, history }) => rollouts > 0 && history.count === 0).length,
  };
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
  const weight = ({ contribution, isSymptom }: Cause) =>
    contribution === null || difference === 0
      ? -Number.MAX_VALUE
      : (contribution.value / difference) * (contribution.isSeparable && !isSymptom ? 1 : 0.5);
  return causes
    .map((cause, at) => {
      const explained = cause.contribution === null || difference === 0 ? null : cause.contribution.value / difference;
      const isLikely = explained !== null && explained >= MIN_EXPLAINED && (corrected[at] ?? 1) < 0.05;
      return { cause, explained, isLikely };
    })
    .toSorted((a, b) => Number(b.isLikely) - Number(a.isLikely) || weight(b.cause) - weight(a.cause));
}
