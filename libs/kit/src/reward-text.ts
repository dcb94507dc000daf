/** Numbers in text for people. JSON has numbers; see docs/reference/metrics.md#numbers. */

/** A value that is not known. */
export const UNKNOWN = '–';

/**
 * A reward, or a figure of rewards, with three significant digits: `.612`, `1.00`, `−.500`, `12.3k`. 0 is `0`, less than a thousandth is
 * `<.001`, and null or NaN is `–`. `signed` is for differences and advantages.
 */
export function formatReward(value: number | null | undefined, { signed = false }: { signed?: boolean } = {}): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size === 0) return '0';
  // Not `~0`: `~` marks inferred values.
  if (size < 0.000_999_5) return value < 0 ? '>−.001' : '<.001';
  const sign = value < 0 ? '−' : signed ? '+' : '';
  return sign + (size >= 999.5 ? formatInUnits(size, ['', 'k', 'M', 'G', 'T']) : size.toPrecision(3).replace(/^0\./, '.'));
}

/** Three digits in the largest unit that gives a value of at least 1 after rounding: `1M`, not `1000k`. */
export function formatInUnits(value: number, units: readonly string[]): string {
  let shown = Number(value.toPrecision(3));
  let unit = 0;
  while (shown >= 1000 && unit < units.length - 1) {
    shown = Number((shown / 1000).toPrecision(3));
    unit += 1;
  }
  return `${shown}${units[unit]}`;
}

/** Without the noise of floating-point sums: 0.95, not 0.9500000000000001. Twelve significant digits; whole numbers stay. */
export function withoutNoise(value: number): number;
export function withoutNoise(value: number | null): number | null;
export function withoutNoise(value: number | null): number | null {
  return value === null || !Number.isFinite(value) || Number.isInteger(value) ? value : Number(value.toPrecision(12));
}
