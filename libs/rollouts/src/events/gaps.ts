/** Messages that were sent and never arrived: the client's ring buffer drops the oldest (dashboard.md 2.6). */

/** Indexes below the largest that never arrived, at most `limit` of them. `indexes` ascending. */
export function missingIndexes(indexes: readonly number[], limit = 1000): number[] {
  const missing: number[] = [];
  for (const [from, to] of missingRanges(indexes)) {
    for (let index = from; index <= to && missing.length < limit; index += 1) missing.push(index);
    if (missing.length >= limit) break;
  }
  return missing;
}

/** The same as ranges, both ends included: "messages 41–43 are missing". */
export function missingRanges(indexes: readonly number[], limit = 1000): [number, number][] {
  const ranges: [number, number][] = [];
  let expected = 0;
  for (const index of indexes) {
    if (index > expected && ranges.length < limit) ranges.push([expected, index - 1]);
    expected = Math.max(expected, index + 1);
  }
  return ranges;
}

/** How many are missing: max(index) + 1 − distinct indexes. `indexes` ascending, repeats allowed. */
export function countGaps(indexes: readonly number[]): number {
  if (indexes.length === 0) return 0;
  const distinct = indexes.reduce((count, index, at) => count + Number(at === 0 || indexes[at - 1] !== index), 0);
  return indexes.at(-1)! + 1 - distinct;
}
