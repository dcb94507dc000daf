import { expect, test } from 'vitest';
import { indexesOfRange } from './task-range.ts';

test.each([
  [null, null, [0, 1, 2, 3]],
  [1, 3, [1, 2]],
  [-2, null, [2, 3]],
  [null, -1, [0, 1, 2]],
  [-99, 99, [0, 1, 2, 3]],
  [3, 1, []],
  [9, null, []],
])('range %j to %j of four', (start, stop, indexes) => {
  expect(indexesOfRange(4, start, stop)).toEqual(indexes);
});
