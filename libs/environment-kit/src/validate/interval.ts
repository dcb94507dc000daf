/** Two-sided 95 % quantile of the standard normal distribution. */
const Z = 1.959963984540054;

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

/**
 * The mean of values in a range with its 95 % interval: Wilson's score interval (Wilson 1927) of the mean scaled to [0, 1]. It is exact for
 * values at the ends of the range, conservative for values between them, and has no width of zero when all values are equal.
 */
export function meanInterval(values: readonly number[], [lowest, highest]: readonly [number, number]): Interval {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const width = highest - lowest;
  if (width <= 0) return { mean, low: mean, high: mean };
  const p = Math.min(1, Math.max(0, (mean - lowest) / width));
  const centre = (p + (Z * Z) / (2 * n)) / (1 + (Z * Z) / n);
  const half = (Z / (1 + (Z * Z) / n)) * Math.sqrt((p * (1 - p)) / n + (Z * Z) / (4 * n * n));
  const scaled = (value: number) => lowest + width * Math.min(1, Math.max(0, value));
  // Rounding errors must not put the mean outside.
  return { mean, low: Math.min(mean, scaled(centre - half)), high: Math.max(mean, scaled(centre + half)) };
}
