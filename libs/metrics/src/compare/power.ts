import jstat from 'jstat';

const { jStat } = jstat;

const POWER = 0.8;
/** Above this number of units Student's t is the normal distribution. */
const MANY = 5_000;
/** z(.975) + z(.8). */
const NORMAL = 1.959_963_984_540_054 + 0.841_621_233_572_914_2;
/** Larger numbers of units are not worth a promise. */
const MAX_NEEDED = 1e9;

/** The power of a two-sided t test at 5 % for a true difference of `noncentrality` standard errors (`statsmodels` `TTestPower.power`). */
export function powerOfT(noncentrality: number, df: number): number {
  const limit = jStat.studentt.inv(0.975, df);
  return 1 - jStat.noncentralt.cdf(limit, df, noncentrality) + jStat.noncentralt.cdf(-limit, df, noncentrality);
}

/** The true difference in standard errors that the test detects in 80 % of all cases: the root of `powerOfT`. */
export function detectable(df: number): number {
  if (df >= MANY) return NORMAL;
  let [low, high] = [0, 1];
  while (powerOfT(high, df) < POWER && high < 1_000) high *= 2;
  for (let i = 0; i < 50; i += 1) {
    const middle = (low + high) / 2;
    if (powerOfT(middle, df) < POWER) low = middle;
    else high = middle;
  }
  return high;
}

/** How many paired differences of deviation `deviation` detect a true difference in 80 % of all cases; null without a finite answer. */
export function tasksNeeded(difference: number, deviation: number): number | null {
  if (difference === 0) return null;
  const size = Math.abs(difference) / deviation;
  const guess = Math.ceil((NORMAL / size) ** 2);
  if (!(guess <= MAX_NEEDED)) return null;
  let count = Math.max(2, guess);
  // Student's t needs a few more than the normal distribution.
  while (count < MANY && powerOfT(size * Math.sqrt(count), count - 1) < POWER) count += 1;
  return count;
}

/**
 * By what factor the samples per task must grow so that `difference` becomes detectable with the same tasks. The squared standard error is
 * `(between + within) / tasks`: more samples reduce `within` only. Null if no number suffices.
 */
export function samplesFactor(
  difference: number,
  { tasks, variance, within }: { tasks: number; variance: number; within: number },
): number | null {
  const target = (difference / detectable(tasks - 1)) ** 2 * tasks;
  const between = Math.max(0, variance - within);
  const factor = Math.min(within, variance) / (target - between);
  return target > between && factor <= MAX_NEEDED ? factor : null;
}
