import jstat from 'jstat';
import { passAtK } from './pass.ts';
import { binomial, numpyChoice, uniform } from './random.ts';
import { mean, percentile, std } from './summary.ts';

export interface Interval {
  low: number;
  high: number;
}

/** A sample by its sums. */
export interface SampleSums {
  count: number;
  sum: number;
  sumOfSquares: number;
}

/** 95 %: `mean ± t(n-1, .975) s / sqrt(n)`; null for fewer than two values. */
export function studentInterval(values: readonly number[]): Interval | null {
  const spread = std(values, 1);
  return spread === null ? null : intervalAround(mean(values)!, spread, values.length);
}

/** The same interval from the sums of the sample. */
export function studentIntervalOfSums({ count, sum, sumOfSquares }: SampleSums): Interval | null {
  if (count < 2) return null;
  const centre = sum / count;
  const variance = Math.max(0, sumOfSquares - count * centre * centre) / (count - 1);
  return intervalAround(centre, Math.sqrt(variance), count);
}

function intervalAround(centre: number, spread: number, count: number): Interval {
  const half = (jstat.jStat.studentt.inv(0.975, count - 1) * spread) / Math.sqrt(count);
  return { low: centre - half, high: centre + half };
}

/** Draws of the group bootstrap, and its fixed seed. */
const DRAWS = 1000;
const SEED = 42;
/** Up to this number of groups each draw lists its groups, as in NumPy; above, it counts the groups of each class. */
const MAX_NAMED_GROUPS = 1000;

/** 95 % percentile interval of the mean of group values, groups drawn with replacement; null for fewer than two groups. */
export function bootstrapInterval(groupValues: readonly number[], draws = DRAWS, seed = SEED): Interval | null {
  const size = groupValues.length;
  if (size < 2) return null;
  return namedGroupsInterval(groupValues, numpyChoice(seed, size, draws * size), draws);
}

function namedGroupsInterval(groupValues: readonly number[], indices: Uint32Array, draws: number): Interval {
  const size = groupValues.length;
  // Sorted, so that the order of groups does not change the interval.
  const values = groupValues.toSorted((a, b) => a - b);
  const means = Array.from({ length: draws }, (_, draw) => {
    let total = 0;
    for (let i = draw * size; i < (draw + 1) * size; i += 1) total += values[indices[i]!]!;
    return total / size;
  });
  return middle(means);
}

const middle = (means: readonly number[]): Interval => ({ low: percentile(means, 0.025)!, high: percentile(means, 0.975)! });

/** The bootstrap interval of pass@k, over the groups that have k samples. */
export function passInterval(groups: readonly { n: number; c: number }[], k: number, draws?: number, seed?: number): Interval | null {
  const values = groups.map(({ n, c }) => passAtK(n, c, k)).filter((value) => value !== null);
  return bootstrapInterval(values, draws, seed);
}

/** Groups with the same numbers of samples and successes. */
export interface GroupClass {
  n: number;
  c: number;
  groups: number;
}

/**
 * `passInterval` for several k. For more than a thousand groups it draws how many groups of each class a sample contains, which is
 * multinomial: the same bootstrap, in time that does not grow with the number of groups.
 */
export function passIntervals(classes: readonly GroupClass[], ks: readonly number[]): Map<number, Interval | null> {
  // Largest classes first, so that few binomials remain for the many small ones. Ties are ordered by content, for equal draws every time.
  const sorted = classes.toSorted((a, b) => b.groups - a.groups || a.n - b.n || a.c - b.c);
  // Most k share their eligible classes; the number of these identifies them.
  const drawn = new Map<number, Uint32Array>();
  const intervals = ks.map((k) => {
    const eligible = sorted.filter(({ n }) => n >= k);
    const size = eligible.reduce((total, { groups }) => total + groups, 0);
    if (size < 2) return [k, null] as const;
    const named = size <= MAX_NAMED_GROUPS;
    const draw = drawn.get(eligible.length) ?? (named ? numpyChoice(SEED, size, DRAWS * size) : multinomialDraws(eligible, size));
    drawn.set(eligible.length, draw);
    const values = eligible.map(({ n, c }) => passAtK(n, c, k)!);
    if (!named) return [k, classesInterval(values, draw, size)] as const;
    const each = eligible.flatMap(({ groups }, at) => Array.from({ length: groups }, () => values[at]!));
    return [k, namedGroupsInterval(each, draw, DRAWS)] as const;
  });
  return new Map(intervals);
}

/** For each draw of `size` groups, how many groups of each class it contains. */
function multinomialDraws(classes: readonly GroupClass[], size: number): Uint32Array {
  const random = uniform(SEED);
  const counts = new Uint32Array(DRAWS * classes.length);
  for (let draw = 0; draw < DRAWS; draw += 1) {
    let left = size;
    let share = size;
    for (let at = 0; at < classes.length && left > 0; at += 1) {
      const { groups } = classes[at]!;
      const count = binomial(left, groups / share, random);
      counts[draw * classes.length + at] = count;
      left -= count;
      share -= groups;
    }
  }
  return counts;
}

function classesInterval(values: readonly number[], counts: Uint32Array, size: number): Interval {
  const means = Array.from({ length: DRAWS }, (_, draw) => {
    let total = 0;
    for (let at = 0; at < values.length; at += 1) total += values[at]! * counts[draw * values.length + at]!;
    return total / size;
  });
  return middle(means);
}

/** Two-sided 95 % quantile of the standard normal distribution. */
const Z = 1.959_963_984_540_054;

/**
 * 95 % score interval of a share of `hits` in `count` (Wilson 1927; Brown, Cai and DasGupta 2001, which recommends it for small counts); null
 * without a count.
 */
export function wilsonInterval(hits: number, count: number): Interval | null {
  if (count === 0) return null;
  const share = hits / count;
  const scale = 1 + Z ** 2 / count;
  const centre = (share + Z ** 2 / (2 * count)) / scale;
  const half = (Z / scale) * Math.sqrt((share * (1 - share)) / count + Z ** 2 / (4 * count ** 2));
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}
