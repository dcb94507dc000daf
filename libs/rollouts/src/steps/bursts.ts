/** The arrivals of one run in order, as numbers, for step inference. */
export interface ArrivalLine {
  /** Milliseconds, ascending. */
  times: Float64Array;
  /** Number of the task of each arrival; -1 = not known. */
  tasks: Int32Array;
  taskCount: number;
}

/** A new burst needs a gap of at least this length and this many times the usual one. */
const MIN_GAP_MS = 10_000;
const GAP_FACTOR = 5;
const GAP_WINDOW = 200;

/** 1 for arrivals after a gap longer than max(10 s, 5 × median of the last 200 gaps). O(n log 200). */
export function longGaps(times: Float64Array): Uint8Array {
  const long = new Uint8Array(times.length);
  const recent: number[] = [];
  const sorted: number[] = [];
  for (let at = 1; at < times.length; at += 1) {
    const gap = times[at]! - times[at - 1]!;
    const median = sorted.length === 0 ? 0 : sorted[sorted.length >> 1]!;
    if (gap > Math.max(MIN_GAP_MS, GAP_FACTOR * median)) long[at] = 1;
    sorted.splice(rank(sorted, gap), 0, gap);
    recent.push(gap);
    // Removing many at once makes the cost per arrival constant.
    const old = recent[recent.length - 1 - GAP_WINDOW];
    if (old !== undefined) sorted.splice(rank(sorted, old), 1);
    if (recent.length > 20 * GAP_WINDOW) recent.splice(0, recent.length - GAP_WINDOW);
  }
  return long;
}

/** The position of the value in the ascending list, or where to insert it. */
function rank(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Arrivals between two long gaps, and the count of each task. */
export interface Burst {
  from: number;
  /** Exclusive. */
  to: number;
  counts: Map<number, number>;
}

export function burstsOf({ tasks }: ArrivalLine, long: Uint8Array): Burst[] {
  const bursts: Burst[] = [];
  for (let at = 0; at < tasks.length; at += 1) {
    if (at === 0 || long[at] === 1) bursts.push({ from: at, to: at, counts: new Map() });
    const burst = bursts.at(-1)!;
    burst.to = at + 1;
    const task = tasks[at]!;
    if (task >= 0) burst.counts.set(task, (burst.counts.get(task) ?? 0) + 1);
  }
  return bursts;
}

/**
 * Samples per prompt: the most frequent count of a task inside a burst, weighted by rollouts, so that stragglers after a gap and an
 * evaluation with one sample per task do not outvote training. null without tasks.
 */
export function modalCount(bursts: readonly Burst[]): number | null {
  const weights = new Map<number, number>();
  for (const { counts } of bursts) for (const count of counts.values()) weights.set(count, (weights.get(count) ?? 0) + count);
  let best: number | null = null;
  for (const [count, weight] of weights) {
    const leads = best === null ? Infinity : weight - weights.get(best)!;
    if (leads > 0 || (leads === 0 && count > best!)) best = count;
  }
  return best;
}

/** Bursts within this time may be parts of one wave. */
const NEAR = 4;

/**
 * Bursts of an evaluation: every task has the same count, which is not n and does not sum to n with the bursts beside it, as the parts of
 * a paused wave do. The last burst may still grow and is never one.
 */
export function evaluationBursts(bursts: readonly Burst[], n: number): Set<Burst> {
  const found = new Set<Burst>();
  bursts.slice(0, -1).forEach((burst, at) => {
    const count = uniformCount(burst);
    if (count === null || count % n === 0) return;
    if (!isPartOfWave(bursts, at, n)) found.add(burst);
  });
  return found;
}

/** The count that at least 95 % of at least two tasks have. */
function uniformCount({ counts }: Burst): number | null {
  if (counts.size < 2) return null;
  const tally = new Map<number, number>();
  for (const count of counts.values()) tally.set(count, (tally.get(count) ?? 0) + 1);
  for (const [count, tasks] of tally) if (tasks >= 0.95 * counts.size) return count;
  return null;
}

function isPartOfWave(bursts: readonly Burst[], at: number, n: number): boolean {
  const taskCounts = bursts[at]!.counts;
  for (let from = Math.max(0, at - NEAR); from <= at; from += 1) {
    for (let to = at; to <= Math.min(bursts.length - 1, at + NEAR); to += 1) {
      const parts = bursts.slice(from, to + 1);
      let whole = 0;
      for (const task of taskCounts.keys()) if (parts.reduce((sum, { counts }) => sum + (counts.get(task) ?? 0), 0) === n) whole += 1;
      if (whole >= taskCounts.size / 2) return true;
    }
  }
  return false;
}
