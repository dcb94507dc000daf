import { expect, it } from 'vitest';
import { ascending, compensatedSum } from './summary.ts';

const spread = (count: number, of: readonly number[]) => Array.from({ length: count }, (_, at) => of[(at * 7) % of.length]!);
const some = (count: number) => Array.from({ length: count }, (_, at) => ((at * 13) % count) / count);

it.each([
  ['none', []],
  ['few', [3, 1, 2]],
  ['two values many times', spread(100, [1, 0])],
  ['negative and infinite ones', spread(100, [0.5, -2, Infinity, -Infinity, 1e-300])],
  ['as many as are counted', spread(100, some(32))],
  ['one more', spread(100, some(33))],
  ['many', some(1_000)],
  ['0 and -0', spread(100, [0, 1, -0])],
  ['-0 alone', spread(100, [-0])],
  ['NaN', spread(100, [1, NaN, 0])],
])('sorts as typed arrays are sorted, and leaves the values as they were: %s', (_, values) => {
  const before = [...values];
  const sorted = ascending(values);
  expect(sorted).toEqual([...Float64Array.from(values).sort()]);
  expect(values).toEqual(before);
});

it.each([
  ['nothing', [], 0],
  ['fractions that take each other away', [0.1, 0.2, -0.1, -0.2], 0],
  ['fractions that do not, quite', [0.1, 0.2, -0.3], 2.7755575615628914e-17],
  ['small beside large', [1e16, 1, -1e16], 1],
  ['too large to lose anything', [1e308, 1e308], Infinity],
])('adds up as Python 3.12 does: %s', (_, values, total) => expect(compensatedSum(values)).toBe(total));
