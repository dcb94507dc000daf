import { clusteredProportion, studentIntervalOfSums } from '@palestra/metrics';

/** A group of a task; step -1 = not known. */
export interface Attempt {
  step: number;
  /** Received rollouts. */
  n: number;
  scored: number;
  successes: number;
}

/** The solve rates of a task by step, from its groups in any order. A step is solved when at least half of its scored rollouts succeed. Steps without a score are skipped. */
export function taskStrip(attempts: readonly Attempt[]) {
  const bySteps = new Map<number, { n: number; scored: number; successes: number }>();
  for (const { step, n, scored, successes } of attempts.filter((one) => one.step >= 0)) {
    const before = bySteps.get(step) ?? { n: 0, scored: 0, successes: 0 };
    bySteps.set(step, { n: before.n + n, scored: before.scored + scored, successes: before.successes + successes });
  }
  const points = [...bySteps].map(([step, sums]) => ({ step, ...sums })).toSorted((a, b) => a.step - b.step);
  const known = points.filter(({ scored }) => scored > 0).map((point) => ({ ...point, solved: point.successes * 2 >= point.scored }));
  const lastSolved = known.findLastIndex(({ solved }) => solved);
  const now = points.at(-1);
  return {
    step: points.map(({ step }) => step),
    solve: points.map(({ scored, successes }) => (scored === 0 ? null : successes / scored)),
    scored: points.map(({ scored }) => scored),
    received: points.map(({ n }) => n),
    solve_rate: clusteredProportion(points),
    first_solved: known.find(({ successes }) => successes > 0)?.step ?? null,
    flips: known.filter(({ solved }, at) => at > 0 && solved !== known[at - 1]!.solved).length,
    regressed_at: lastSolved < 0 ? null : (known[lastSolved + 1]?.step ?? null),
    now: now ? { step: now.step, successes: now.successes, scored: now.scored } : null,
  };
}

/** The rewards of a group; step -1 = not known. */
export interface Rewards {
  step: number;
  scored: number;
  sum: number;
  sum_squares: number;
}

/** The mean reward of a task at each of the steps of its strip, with a 95 % interval. */
export function taskRewards(groups: readonly Rewards[]) {
  const bySteps = new Map<number, { count: number; sum: number; sumOfSquares: number }>();
  for (const { step, scored, sum, sum_squares: squares } of groups.filter((one) => one.step >= 0)) {
    const before = bySteps.get(step) ?? { count: 0, sum: 0, sumOfSquares: 0 };
    bySteps.set(step, { count: before.count + scored, sum: before.sum + sum, sumOfSquares: before.sumOfSquares + squares });
  }
  const points = [...bySteps].toSorted(([a], [b]) => a - b).map(([, sums]) => sums);
  const intervals = points.map(studentIntervalOfSums);
  return {
    mean: points.map(({ count, sum }) => (count === 0 ? null : sum / count)),
    low: intervals.map((interval) => interval?.low ?? null),
    high: intervals.map((interval) => interval?.high ?? null),
  };
}
