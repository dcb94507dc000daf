/** Numbers on all pages: three significant digits, and `–` for NaN, null and Infinity. */

export const UNKNOWN = '–';

type Maybe = number | null | undefined;
const known = (value: Maybe): value is number => typeof value === 'number' && Number.isFinite(value);

/** A reward: `.612`, `1.00`, `−.50`, `<.01`; with a sign if it is negative or `signed`. */
export function formatReward(value: Maybe, { signed = false, digits = 2 }: { signed?: boolean; digits?: number } = {}): string {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  const text = size >= 100 ? formatCount(size) : size.toFixed(digits).replace(/^0\./, '.');
  const isZero = Number(size.toFixed(digits)) === 0;
  // Not `~0`: `~` marks inferred values.
  if (isZero && size > 0) return value < 0 ? `>−.${'1'.padStart(digits, '0')}` : `<.${'1'.padStart(digits, '0')}`;
  if (isZero) return '0';
  const sign = value < 0 ? '−' : signed ? '+' : '';
  return sign + text;
}

/** `9 088` below ten thousand (thin no-break spaces), `12.4k`, `3.80M` above. */
export function formatCount(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  if (value < 0) return `−${formatCount(-value)}`;
  if (value < 10_000) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
  return inUnits(value, ['', 'k', 'M', 'G', 'T']);
}

/** Three digits in the largest unit that gives a value of at least 1 after rounding: `1M`, not `1000k`. */
function inUnits(value: number, units: readonly string[]): string {
  let shown = Number(value.toPrecision(3));
  let unit = 0;
  while (shown >= 1000 && unit < units.length - 1) {
    shown = Number((shown / 1000).toPrecision(3));
    unit += 1;
  }
  return `${shown}${units[unit]}`;
}

/** A mean: `6.21`, `26.4`, `408`, `−26.4`. */
export function formatMean(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  if (value < 0) return `−${formatMean(-value)}`;
  return value >= 1000 ? formatCount(value) : String(Number(value.toPrecision(3)));
}

/** `part` of `whole` as a percentage: without decimals from 10 to 90, else with one; unknown if `whole` is 0. */
export function formatShare(part: Maybe, whole: Maybe): string {
  if (!known(part) || !known(whole) || whole === 0) return UNKNOWN;
  const percent = (100 * part) / whole;
  if (percent === 0 || percent === 100) return `${percent} %`;
  return `${percent >= 10 && percent <= 90 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

export function formatBytes(bytes: Maybe): string {
  if (!known(bytes)) return UNKNOWN;
  return inUnits(bytes, [' B', ' kB', ' MB', ' GB', ' TB']);
}

/** `1 task`, `8 tasks`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
