import { formatReward } from '../format/number.ts';
import { formatFigure } from '../overview/figures.ts';

/** A difference of a figure: `+.162`, `−3.1 pp`, `0`. A difference of percentages is in percentage points. */
export function formatDifference(key: string, value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  const shown = formatFigure(key, size);
  const text = shown.endsWith('%') ? shown.replace('%', 'pp') : size < 1 ? formatReward(size) : shown;
  return `${value < 0 ? '−' : '+'}${text}`;
}

/** A p value: `< .001`, `.0231`, `1.00`. */
export function formatP(p: number): string {
  return p < 0.001 ? '< .001' : formatReward(p);
}
