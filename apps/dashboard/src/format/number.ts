import { formatInUnits, UNKNOWN } from '@palestra/kit/reward-text';

/** Numbers on all pages: three significant digits, and `–` for NaN, null and Infinity. */

export { formatReward, UNKNOWN } from '@palestra/kit/reward-text';

type Maybe = number | null | undefined;
const known = (value: Maybe): value is number => typeof value === 'number' && Number.isFinite(value);

/** `9 088` below ten thousand (thin no-break spaces), `12.4k`, `3.80M` above. */
export function formatCount(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  if (value < 0) return `−${formatCount(-value)}`;
  if (value < 10_000) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
  return formatInUnits(value, ['', 'k', 'M', 'G', 'T']);
}

/** A mean: `6.21`, `26.4`, `408`, `−26.4`. */
export function formatMean(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  if (value < 0) return `−${formatMean(-value)}`;
  return value >= 1000 ? formatCount(value) : String(Number(value.toPrecision(3)));
}

/**
 * `part` of `whole` as a percentage: without decimals from 10 to 90, else with one; unknown if `whole` is 0. Only none is `0 %` and only all is
 * `100 %`: one failure of ten thousand is `<0.1 %`, and leaves `>99.9 %`.
 */
export function formatShare(part: Maybe, whole: Maybe): string {
  if (!known(part) || !known(whole) || whole === 0) return UNKNOWN;
  // Without the noise of floating-point numbers.
  const percent = Number(((100 * part) / whole).toFixed(9));
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent > 0 && percent < 0.05) return '<0.1 %';
  if (percent >= 99.95 && percent < 100) return '>99.9 %';
  return `${percent >= 10 && percent <= 90 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

export function formatBytes(bytes: Maybe): string {
  if (!known(bytes)) return UNKNOWN;
  return formatInUnits(bytes, [' B', ' kB', ' MB', ' GB', ' TB']);
}

/** `1 task`, `8 tasks`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}
