import type { Interval } from './intervals.ts';

/** Samples that share something, such as one visit of a task: `scored` rollouts, of which `successes` succeeded. */
export interface Cluster {
  scored: number;
  successes: number;
}

export interface Proportion extends Interval {
  rate: number;
  successes: number;
  scored: number;
  /** Independent samples with the same precision: `scored / design effect`. */
  effective: number;
}

/** The .975 quantile of the normal distribution. */
const Z = 1.959963984540054;

/** 95 %: the score interval of Wilson (1927), as `statsmodels.stats.proportion.proportion_confint(method="wilson")`. `count` may be a fraction. */
export function wilsonInterval(rate: number, count: number): Interval {
  const scale = 1 + Z ** 2 / count;
  const centre = (rate + Z ** 2 / (2 * count)) / scale;
  const half = (Z / scale) * Math.sqrt((rate * (1 - rate)) / count + Z ** 2 / (4 * count ** 2));
  // Rounding would leave a rate of 0 or 1 a little outside of its interval.
  return { low: rate === 0 ? 0 : Math.max(0, centre - half), high: rate === 1 ? 1 : Math.min(1, centre + half) };
}

/**
 * A rate over clusters of samples with a 95 % Wilson interval for the effective number of samples, `n / deff` (Dean and Pagano 2015, J. Surv.
 * Stat. Methodol. 3(4), 484–503). `deff` is the variance of the ratio `Σc/Σn` between clusters, `G/(G−1) · Σ(c − p·n)² / N²` (Cochran 1977,
 * 6.5), over the variance of independent samples, `p(1−p)/N`. It is at least 1; it is 1 where it is not known: for one cluster and for a rate
 * of 0 or 1. Null without samples.
 */
export function clusteredProportion(clusters: readonly Cluster[]): Proportion | null {
  const known = clusters.filter(({ scored }) => scored > 0);
  const scored = known.reduce((sum, each) => sum + each.scored, 0);
  const successes = known.reduce((sum, each) => sum + each.successes, 0);
  if (scored === 0) return null;
  const rate = successes / scored;
  const squares = known.reduce((sum, each) => sum + (each.successes - rate * each.scored) ** 2, 0);
  const effective = effectiveCount(rate, { scored, clusters: known.length, squares });
  return { rate, successes, scored, effective, ...wilsonInterval(rate, effective) };
}

/** `n / deff` of `clusteredProportion`. `squares`: the sum over clusters of `(successes − rate · scored)²`. */
export function effectiveCount(rate: number, { scored, clusters, squares }: { scored: number; clusters: number; squares: number }): number {
  if (clusters < 2 || rate === 0 || rate === 1) return scored;
  return scored / Math.max(1, (clusters / (clusters - 1)) * (squares / scored ** 2) * (scored / (rate * (1 - rate))));
}
