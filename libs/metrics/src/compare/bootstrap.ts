import type { Interval } from '../intervals.ts';
import { numpyIndices } from '../random.ts';
import { percentile } from '../summary.ts';

const BOOTSTRAP_DRAWS = 1_000;
const SEED = 42;
/** Indices drawn between two pauses: about two milliseconds. */
const SLICE = 100_000;

/**
 * Percentile interval (95 %) of the mean of one value per task, tasks drawn with replacement (Efron 1979; all samples of a task stay together:
 * Davison and Hinkley 1997, 3.8). The draws are those of NumPy's `RandomState(42).choice`, so the interval is reproducible. Yields between
 * slices of work, so that a caller can serve others meanwhile; null for fewer than two values.
 */
export function* bootstrapOfTasks(values: readonly number[], draws = BOOTSTRAP_DRAWS): Generator<void, Interval | null> {
  const means = yield* bootstrapMeans(values, draws, SEED);
  return means && middle(means);
}

/** The same for the difference of two independent sets of tasks, each drawn by itself. */
export function* bootstrapOfRuns(
  first: readonly number[],
  other: readonly number[],
  draws = BOOTSTRAP_DRAWS,
): Generator<void, Interval | null> {
  const a = yield* bootstrapMeans(first, draws, SEED);
  const b = yield* bootstrapMeans(other, draws, SEED + 1);
  return a && b && middle(a.map((mean, draw) => b[draw]! - mean));
}

function* bootstrapMeans(values: readonly number[], draws: number, seed: number): Generator<void, number[] | null> {
  const size = values.length;
  if (size < 2) return null;
  // Sorted, so that the order of tasks does not change the interval.
  const sorted = values.toSorted((a, b) => a - b);
  const next = numpyIndices(seed, size);
  const means: number[] = [];
  let since = 0;
  for (let draw = 0; draw < draws; draw += 1) {
    let total = 0;
    for (let i = 0; i < size; i += 1) total += sorted[next()]!;
    means.push(total / size);
    since += size;
    if (since < SLICE) continue;
    since = 0;
    yield;
  }
  return means;
}

const middle = (means: readonly number[]): Interval => ({ low: percentile(means, 0.025)!, high: percentile(means, 0.975)! });
