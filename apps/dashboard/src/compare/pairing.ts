import type { RolloutDiff } from '@palestra/protocol';

type Row = RolloutDiff['rows'][number];

/**
 * Between two rows that are the same, what one did stands beside what the other did instead, the first with the first: an alignment has
 * them one below the other. A block begins where it did, and so does the first divergence.
 */
export function pairedRows(rows: readonly Row[]): Row[] {
  const paired: Row[] = [];
  let left: NonNullable<Row['a']>[] = [];
  let right: NonNullable<Row['b']>[] = [];
  const settle = () => {
    for (let i = 0; i < Math.max(left.length, right.length); i += 1) paired.push({ a: left[i] ?? null, b: right[i] ?? null, same: false });
    [left, right] = [[], []];
  };
  for (const row of rows) {
    if (row.same) {
      settle();
      paired.push(row);
      continue;
    }
    if (row.a) left.push(row.a);
    if (row.b) right.push(row.b);
  }
  settle();
  return paired;
}
