/**
 * Indexes of at most `max` points to keep, ascending: the first, the last, and the least and largest value of each of equal stretches between
 * them, so that no extreme is lost. Nulls are not compared: a stretch without a value keeps its first point.
 */
export function decimate(values: readonly (number | null)[], max: number): number[] {
  const { length } = values;
  if (length <= max) return values.map((_value, at) => at);
  const stretches = Math.floor((max - 2) / 2);
  if (stretches < 1) return max === 1 ? [length - 1] : [0, length - 1];
  const kept = new Set([0, length - 1]);
  for (let stretch = 0; stretch < stretches; stretch += 1) {
    const from = 1 + Math.floor((stretch * (length - 2)) / stretches);
    const to = 1 + Math.floor(((stretch + 1) * (length - 2)) / stretches);
    const [low, high] = extremes(values, from, to);
    kept.add(low).add(high);
  }
  return [...kept].toSorted((a, b) => a - b);
}

function extremes(values: readonly (number | null)[], from: number, to: number): [number, number] {
  let low = from;
  let high = from;
  for (let at = from; at < to; at += 1) {
    const value = values[at]!;
    if (value === null) continue;
    if (values[low] === null || value < values[low]!) low = at;
    if (values[high] === null || value > values[high]!) high = at;
  }
  return [low, high];
}
