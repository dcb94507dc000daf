import { min, max } from './summary.ts';

export const HISTOGRAM_BINS = 50;

/**
 * Rewards in 50 bins of equal width over [0, 2^e] or, with a negative reward, [-2^e, 2^e]; 2^e is the least power of two from 1 up that
 * covers every reward. A bin contains its edge away from zero: (0.98, 1] contains 1. Zero is in the first bin that is not negative.
 * These ranges and edges make merging exact: the merged histograms of parts equal the histogram of the whole.
 */
export interface RewardHistogram {
  low: number;
  high: number;
  counts: number[];
}

export function emptyHistogram(): RewardHistogram {
  return { low: 0, high: 1, counts: Array.from({ length: HISTOGRAM_BINS }, () => 0) };
}

export function histogram(rewards: readonly number[]): RewardHistogram {
  const least = min(rewards) ?? 0;
  const most = max(rewards) ?? 0;
  let high = 1;
  while (high < Math.max(Math.abs(least), Math.abs(most))) high *= 2;
  const result = { ...emptyHistogram(), low: least < 0 ? -high : 0, high };
  // Most callers pass sorted rewards, so equal ones are adjacent.
  let [before, bin] = [Number.NaN, 0];
  for (const reward of rewards) {
    if (reward !== before) bin = binOf(reward, result);
    before = reward;
    result.counts[bin]! += 1;
  }
  return result;
}

/** 51 edges. */
export function histogramEdges({ low, high }: RewardHistogram): number[] {
  return Array.from({ length: HISTOGRAM_BINS + 1 }, (_, i) => low + ((high - low) * i) / HISTOGRAM_BINS);
}

const binsAside = (range: RewardHistogram): number => (range.low < 0 ? HISTOGRAM_BINS / 2 : HISTOGRAM_BINS);

function binOf(reward: number, range: RewardHistogram): number {
  // Division by a power of two is exact, so multiplying first makes every range round alike.
  const away = Math.max(0, Math.ceil((Math.abs(reward) * binsAside(range)) / range.high) - 1);
  return reward < 0 ? HISTOGRAM_BINS / 2 - 1 - away : HISTOGRAM_BINS - binsAside(range) + away;
}

export function mergeHistograms(a: RewardHistogram, b: RewardHistogram): RewardHistogram {
  const high = Math.max(a.high, b.high);
  const merged = { ...emptyHistogram(), low: a.low < 0 || b.low < 0 ? -high : 0, high };
  for (const part of [a, b]) {
    const ratio = (binsAside(part) / part.high / binsAside(merged)) * merged.high;
    const zero = HISTOGRAM_BINS - binsAside(part);
    const mergedZero = HISTOGRAM_BINS - binsAside(merged);
    part.counts.forEach((count, bin) => {
      const target = bin >= zero ? mergedZero + Math.floor((bin - zero) / ratio) : mergedZero - 1 - Math.floor((zero - 1 - bin) / ratio);
      merged.counts[target]! += count;
    });
  }
  return merged;
}

/**
 * The percentile (linear interpolation between closest ranks) at `q` in [0, 1], as if the values of a bin were evenly spread. It is at most one
 * bin's width from the exact one. null for no values. `least` and `most`: the range of the values, where known.
 */
export function percentileOfHistogram(of: RewardHistogram, q: number, least = of.low, most = of.high): number | null {
  const total = of.counts.reduce((a, b) => a + b, 0);
  if (total === 0) return null;
  const rank = q * (total - 1);
  const low = Math.floor(rank);
  const clamped = (at: number) => Math.min(most, Math.max(least, valueOfRank(of, Math.min(at, total - 1))));
  return clamped(low) + (clamped(low + 1) - clamped(low)) * (rank - low);
}

export const binWidth = ({ low, high }: RewardHistogram): number => (high - low) / HISTOGRAM_BINS;

function valueOfRank(of: RewardHistogram, rank: number): number {
  let passed = 0;
  const bin = of.counts.findIndex((count) => (passed += count) > rank);
  const count = of.counts[bin]!;
  return of.low + binWidth(of) * (bin + (rank - (passed - count) + 0.5) / count);
}
