/** Sums in NumPy's order (pairwise, eight lanes), so that means and zero deviations agree with the trainers bit by bit. */
export function sum(values: readonly number[]): number {
  return pairwise(values, 0, values.length);
}

function pairwise(values: readonly number[], from: number, count: number): number {
  if (count < 8) {
    let total = 0;
    for (let i = 0; i < count; i += 1) total += values[from + i]!;
    return total;
  }
  if (count > 128) {
    const half = Math.floor(count / 2) - (Math.floor(count / 2) % 8);
    return pairwise(values, from, half) + pairwise(values, from + half, count - half);
  }
  // Eight variables are several times faster than an array of lanes.
  let a = values[from]!;
  let b = values[from + 1]!;
  let c = values[from + 2]!;
  let d = values[from + 3]!;
  let e = values[from + 4]!;
  let f = values[from + 5]!;
  let g = values[from + 6]!;
  let h = values[from + 7]!;
  const whole = count - (count % 8);
  for (let i = from + 8; i < from + whole; i += 8) {
    a += values[i]!;
    b += values[i + 1]!;
    c += values[i + 2]!;
    d += values[i + 3]!;
    e += values[i + 4]!;
    f += values[i + 5]!;
    g += values[i + 6]!;
    h += values[i + 7]!;
  }
  let total = a + b + (c + d) + (e + f + (g + h));
  for (let i = whole; i < count; i += 1) total += values[from + i]!;
  return total;
}

/** Python's `sum` from 3.12 on (Neumaier): it adds lost digits at the end, so that 0.1 + 0.2 - 0.1 - 0.2 is 0. */
export function compensatedSum(values: readonly number[]): number {
  let [total, lost] = [0, 0];
  for (const value of values) {
    const next = total + value;
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total;
    total = next;
  }
  return Number.isFinite(lost) ? total + lost : total;
}

/** A sorted copy. A typed array sorts several times faster than `toSorted` with a comparison. */
export const ascending = (values: readonly number[]): number[] => Array.from(Float64Array.from(values).sort());

/** null for no values. */
export function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : sum(values) / values.length;
}

/** null for fewer than `ddof + 1` values. */
export function std(values: readonly number[], ddof: 0 | 1): number | null {
  if (values.length <= ddof) return null;
  const centre = mean(values)!;
  return Math.sqrt(sum(values.map((value) => (value - centre) ** 2)) / (values.length - ddof));
}

/** `q` in [0, 1], linear interpolation between closest ranks (NumPy's default); null for no values. */
export function percentile(values: readonly number[], q: number): number | null {
  return percentileOfSorted(ascending(values), q);
}

/** The percentile of values in ascending order. */
export function percentileOfSorted(sorted: readonly number[], q: number): number | null {
  if (sorted.length === 0) return null;
  const rank = q * (sorted.length - 1);
  const low = Math.floor(rank);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (rank - low);
}

/** The percentile of counted values, bit for bit equal to `percentile` of all of them. */
export function percentileOfCounts(counted: readonly (readonly [value: number, count: number])[], q: number): number | null {
  const sorted = counted.filter(([, count]) => count > 0).toSorted(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  const rank = q * (total - 1);
  const low = Math.floor(rank);
  const [below, above] = [valueAt(sorted, low), valueAt(sorted, Math.min(low + 1, total - 1))];
  return below + (above - below) * (rank - low);
}

function valueAt(sorted: readonly (readonly [value: number, count: number])[], rank: number): number {
  let passed = 0;
  for (const [value, count] of sorted) if ((passed += count) > rank) return value;
  return sorted.at(-1)![0];
}

/** `Math.min(...values)` fails on 100 000 values. */
export function min(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  let least = values[0]!;
  for (const value of values) if (value < least) least = value;
  return least;
}

export function max(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  let most = values[0]!;
  for (const value of values) if (value > most) most = value;
  return most;
}
