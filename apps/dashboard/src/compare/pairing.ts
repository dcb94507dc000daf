import type { RolloutDiff } from '@palestra/protocol';
import { formatCount } from '../format/number.ts';

type Row = RolloutDiff['rows'][number];

/**
 * Pairs the different actions between two equal rows: the first of `a` with the first of `b`, and so on. The alignment of the API lists them
 * one below the other. Blocks, and so the first divergence, keep their first row.
 */
export function pairedRows(rows: readonly Row[]): Row[] {
  const paired: Row[] = [];
  let left: NonNullable<Row['a']>[] = [];
  let right: NonNullable<Row['b']>[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(left.length, right.length); i += 1) paired.push({ a: left[i] ?? null, b: right[i] ?? null, same: false });
    [left, right] = [[], []];
  };
  for (const row of rows) {
    if (row.same) {
      flush();
      paired.push(row);
      continue;
    }
    if (row.a) left.push(row.a);
    if (row.b) right.push(row.b);
  }
  flush();
  return paired;
}

/** How many actions are equal at the start of two rollouts. */
export const equalStart = (firstDivergence: number | null): string => {
  if (firstDivergence === null) return 'All actions are equal';
  if (firstDivergence === 0) return 'The first actions differ';
  return firstDivergence === 1 ? 'The first action is equal' : `The first ${formatCount(firstDivergence)} actions are equal`;
};
