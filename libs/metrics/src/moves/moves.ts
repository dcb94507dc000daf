import { type Estimate, estimate } from '../compare/tests.ts';

/** The rewards of one step, by group. Sums of several steps add up. */
export interface GroupedRewards {
  /** Groups with a reward. A rollout without a group counts as one. */
  groups: number;
  /** Rollouts with a reward, and the sum of their rewards. */
  rollouts: number;
  sum: number;
  /** Sum over groups of `(sum of its rewards)² / (number of its rewards)`. */
  squares: number;
}

export interface StepRewards extends GroupedRewards {
  step: number;
}

export interface StepMove {
  step: number;
  /** The steps that it is compared with, ascending. */
  baseline: number[];
  now: { groups: number; rollouts: number; mean: number };
  before: { groups: number; rollouts: number; mean: number };
  /** `now − before`, with the 95 % interval of this one comparison. */
  estimate: Estimate;
  /** The p value times the number of compared steps of the run, at most 1. */
  corrected: number | null;
  /** The corrected p value is below 0.05. */
  moved: boolean;
}

/** Steps with data that a step is compared with. */
const BASELINE_STEPS = 5;
const LEVEL = 0.05;
/** Fewer rollouts, or groups, are often all alike by chance. */
const MIN_ROLLOUTS = 8;
const MIN_GROUPS = 2;

const isEnough = ({ groups, rollouts }: GroupedRewards): boolean => groups >= MIN_GROUPS && rollouts >= MIN_ROLLOUTS;

/**
 * Compares each step with up to five steps before it (docs/reference/metrics.md#moves). After a move the baseline starts at the moved step,
 * so that one change is reported once. The level of 0.05 is divided by the number of comparisons (Bonferroni): a run without any change
 * reports a move with a probability of at most 5 %. `steps` ascend; a step without rewards is skipped.
 */
export function findMoves(steps: readonly StepRewards[]): StepMove[] {
  const known = steps.filter(({ rollouts }) => rollouts > 0);
  const comparisons = known.filter((step, at) => at > 0 && isEnough(step)).length;
  const moves: StepMove[] = [];
  let start = 0;
  for (const [at, step] of known.entries()) {
    const baseline = known.slice(Math.max(start, at - BASELINE_STEPS), at);
    if (baseline.length === 0) continue;
    const before = addRewards(baseline);
    const found = pooledEstimate(before, step);
    const corrected = found.p === null || !isEnough(step) || !isEnough(before) ? null : Math.min(1, found.p * comparisons);
    const moved = corrected !== null && corrected < LEVEL;
    if (moved) start = at;
    moves.push({
      step: step.step,
      baseline: baseline.map((one) => one.step),
      now: sideOf(step),
      before: sideOf(before),
      estimate: found,
      corrected,
      moved,
    });
  }
  return moves;
}

const sideOf = ({ groups, rollouts, sum }: GroupedRewards): StepMove['now'] => ({ groups, rollouts, mean: sum / rollouts });

const addRewards = (parts: readonly GroupedRewards[]): GroupedRewards =>
  parts.reduce<GroupedRewards>(
    (total, { groups, rollouts, sum, squares }) => ({
      groups: total.groups + groups,
      rollouts: total.rollouts + rollouts,
      sum: total.sum + sum,
      squares: total.squares + squares,
    }),
    { groups: 0, rollouts: 0, sum: 0, squares: 0 },
  );

/** What sums of rewards leave as noise of floating point, relative to them. */
const NOISE = 1e-12;

/**
 * `now − before` by least squares over group means, weighted by the rollouts of each group, with one variance (`statsmodels` `WLS`). The group
 * is the unit, because its rollouts are not independent. For groups of one size this is Student's t test of two samples.
 */
export function pooledEstimate(before: GroupedRewards, now: GroupedRewards): Estimate {
  const [from, to] = [before.sum / before.rollouts, now.sum / now.rollouts];
  const difference = Math.abs(to - from) <= NOISE * Math.max(Math.abs(from), Math.abs(to)) ? 0 : to - from;
  const df = before.groups + now.groups - 2;
  if (df < 1) return { difference, low: null, high: null, p: null, error: null, df: null };
  const within = (side: GroupedRewards) => Math.max(0, side.squares - (side.sum * side.sum) / side.rollouts);
  const residual = within(before) + within(now);
  const variance = residual <= NOISE * (before.squares + now.squares) ? 0 : residual / df;
  return estimate(difference, Math.sqrt(variance * (1 / before.rollouts + 1 / now.rollouts)), df);
}
