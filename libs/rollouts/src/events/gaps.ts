/** Messages that were sent and never arrived: the client drops the oldest events of a full buffer (docs/reference/metrics.md#messages). */

/** The indexes below the largest that never arrived, at most `limit`. `indexes` ascend. */
export function missingIndexes(indexes: readonly number[], limit = 1000): number[] {
  const missing: number[] = [];
  for (const [from, to] of missingRanges(indexes)) {
    for (let index = from; index <= to && missing.length < limit; index += 1) missing.push(index);
    if (missing.length >= limit) break;
  }
  return missing;
}

/** The same as ranges with both ends inclusive: "messages 41–43 are missing". */
export function missingRanges(indexes: readonly number[], limit = 1000): [number, number][] {
  const ranges: [number, number][] = [];
  let expected = 0;
  for (const index of indexes) {
    if (index > expected && ranges.length < limit) ranges.push([expected, index - 1]);
    expected = Math.max(expected, index + 1);
  }
  return ranges;
}

/** Number of missing messages: max(index) + 1 − distinct indexes. `indexes` ascend and may repeat. */
export function countGaps(indexes: readonly number[]): number {
  if (indexes.length === 0) return 0;
  const distinct = indexes.reduce((count, index, at) => count + Number(at === 0 || indexes[at - 1] !== index), 0);
  return indexes.at(-1)! + 1 - distinct;
}
