import jstat from 'jstat';

const { jStat } = jstat;

/** The mean of independent values with its estimated variance. */
export interface Sample {
  count: number;
  mean: number;
  /** ddof 1; null for fewer than two values. */
  variance: number | null;
}

/** A difference with its 95 % interval and two-sided p value; both null where the variance is unknown. All numbers are finite. */
export interface Estimate {
  difference: number;
  low: number | null;
  high: number | null;
  p: number | null;
  /** Standard error of the difference. */
  error: number | null;
  /** Degrees of freedom of Student's t. */
  df: number | null;
}

export function sampleOf(values: readonly number[]): Sample {
  const count = values.length;
  const mean = count === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count, mean, variance: count < 2 ? null : squares / (count - 1) };
}

/**
 * Student's t on paired differences: `mean ± t(n−1, .975)·s/√n` (Student 1908; `scipy.stats.ttest_rel`). Null without differences; without an
 * interval for one. Without variance the interval is the difference itself, and p is 1 for a difference of 0, else 0.
 */
export function pairedEstimate(differences: readonly number[]): Estimate | null {
  const { count, mean, variance } = sampleOf(differences);
  if (count === 0) return null;
  return variance === null ? unknown(mean) : estimate(mean, Math.sqrt(variance / count), count - 1);
}

/**
 * Welch's interval of `other − first` for independent samples of unequal variance, with the degrees of freedom of Welch and Satterthwaite
 * (Welch 1947; `scipy.stats.ttest_ind(equal_var=False)`). Null if a sample is empty; without an interval if one has no variance estimate.
 */
export function welchEstimate(first: Sample, other: Sample): Estimate | null {
  if (first.count === 0 || other.count === 0) return null;
  const difference = other.mean - first.mean;
  if (first.variance === null || other.variance === null) return unknown(difference);
  const [a, b] = [first.variance / first.count, other.variance / other.count];
  // Scaled by the larger one: squares of tiny variances would underflow.
  const [shareA, shareB] = [a / Math.max(a, b), b / Math.max(a, b)];
  const df =
    a + b === 0
      ? first.count + other.count - 2
      : (shareA + shareB) ** 2 / (shareA ** 2 / (first.count - 1) + shareB ** 2 / (other.count - 1));
  return estimate(difference, Math.sqrt(a + b), df);
}

const unknown = (difference: number): Estimate => ({ difference, low: null, high: null, p: null, error: null, df: null });

/** With Student's t; without an error the interval is the difference itself. */
export function estimate(difference: number, error: number, df: number): Estimate {
  const half = jStat.studentt.inv(0.975, df) * error;
  const p = error === 0 ? (difference === 0 ? 1 : 0) : studentP(difference / error, df);
  return { difference, low: difference - half, high: difference + half, p, error, df };
}

/** Two-sided p value of t: the regularised incomplete beta function of `df / (df + t²)` (Abramowitz and Stegun, 26.7.1). */
export function studentP(t: number, df: number): number {
  const x = df / (df + t * t);
  return x >= 1 ? 1 : Math.min(1, Math.max(0, jStat.ibeta(x, df / 2, 0.5)));
}

/** Up to this number of discordant pairs McNemar's test is exact. */
const MAX_EXACT = 25;

/**
 * McNemar's test of paired outcomes (McNemar 1947; `statsmodels.stats.contingency_tables.mcnemar`). `lost` and `gained` count the pairs that
 * changed. Up to 25 it is the two-sided binomial test; above, chi-squared with continuity correction. p is 1 if nothing changed.
 */
export function mcnemar(lost: number, gained: number): { p: number; exact: boolean } {
  const discordant = lost + gained;
  if (discordant > MAX_EXACT) {
    const statistic = (Math.abs(lost - gained) - 1) ** 2 / discordant;
    return { p: Math.max(0, 1 - jStat.chisquare.cdf(statistic, 1)), exact: false };
  }
  let chance = 0.5 ** discordant;
  let tail = 0;
  for (let k = 0; k <= Math.min(lost, gained); k += 1) {
    tail += chance;
    chance *= (discordant - k) / (k + 1);
  }
  return { p: Math.min(1, 2 * tail), exact: true };
}

/** p values corrected for their number by Holm's step-down method (Holm 1979; `multipletests(method="holm")`), in the given order. Nulls stay. */
export function holm(ps: readonly (number | null)[]): (number | null)[] {
  const known = ps.flatMap((p, at) => (p === null ? [] : [{ p, at }])).toSorted((a, b) => a.p - b.p || a.at - b.at);
  const corrected = ps.map((): number | null => null);
  let highest = 0;
  for (const [rank, { p, at }] of known.entries()) {
    highest = Math.max(highest, Math.min(1, p * (known.length - rank)));
    corrected[at] = highest;
  }
  return corrected;
}
