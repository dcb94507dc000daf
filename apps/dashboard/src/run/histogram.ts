/** Bars of a reward histogram: lower edges, counts, and the width of a bin. */
export interface Histogram {
  edges: number[];
  counts: number[];
  width: number;
}

const niceSteps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];

/** About `bins` bars with round edges; a value on the last edge belongs to the last bar. */
export function histogram(values: number[], bins = 20): Histogram {
  if (values.length === 0) return { edges: [], counts: [], width: 1 };
  let [low, high] = [values[0]!, values[0]!];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const span = Math.max(high - low, low >= 0 && high <= 1 ? 1 : 0.1);
  if (low >= 0 && high <= 1) [low, high] = [0, 1];
  const width = niceSteps.find((step) => span / step <= bins) ?? span / bins;
  const first = Math.floor(low / width + 1e-9);
  const count = Math.max(1, Math.ceil((high - first * width) / width - 1e-9));
  const counts = Array<number>(count).fill(0);
  for (const value of values) counts[Math.min(count - 1, Math.max(0, Math.floor(value / width - first + 1e-9)))]! += 1;
  return { edges: counts.map((_, i) => Number(((first + i) * width).toPrecision(12))), counts, width };
}
