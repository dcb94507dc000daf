import jstat from 'jstat';
import { passAtK } from './pass.ts';
import { numpyChoice } from './random.ts';
import { mean, percentile, std } from './summary.ts';

export interface Interval {
  low: number;
  high: number;
}

/** 95 %: `mean ± t(G-1, .975) s / sqrt(G)` over group means; null for fewer than two groups. */
export function studentInterval(groupMeans: readonly number[]): Interval | null {
  const spread = std(groupMeans, 1);
  if (spread === null) return null;
  const half = (jstat.jStat.studentt.inv(0.975, groupMeans.length - 1) * spread) / Math.sqrt(groupMeans.length);
  const centre = mean(groupMeans)!;
  return { low: centre - half, high: centre + half };
}

/** 95 % percentile interval of the mean of group values, groups drawn with replacement; null for fewer than two groups. */
export function bootstrapInterval(groupValues: readonly number[], draws = 1000, seed = 42): Interval | null {
  const size = groupValues.length;
  if (size < 2) return null;
  const indices = numpyChoice(seed, size, draws * size);
  // Sorted, so that the order in which groups arrived does not change the interval.
  const values = groupValues.toSorted((a, b) => a - b);
  const means = Array.from({ length: draws }, (_, draw) => {
    let total = 0;
    for (let i = draw * size; i < (draw + 1) * size; i += 1) total += values[indices[i]!]!;
    return total / size;
  });
  return { low: percentile(means, 0.025)!, high: percentile(means, 0.975)! };
}

/** The same for pass@k, over the groups that have k samples. */
export function passInterval(groups: readonly { n: number; c: number }[], k: number, draws?: number, seed?: number): Interval | null {
  const values = groups.map(({ n, c }) => passAtK(n, c, k)).filter((value) => value !== null);
  return bootstrapInterval(values, draws, seed);
}
