import { expect, test } from 'vitest';
import { histogram } from './histogram.ts';

test('rewards of 0 to 1 fill twenty bars, the top value the last one', () => {
  const { edges, counts, width } = histogram([0, 0.049, 0.05, 0.97, 1, 1]);
  expect([edges.length, width]).toEqual([20, 0.05]);
  expect([counts[0], counts[1], counts[19]]).toEqual([2, 1, 3]);
});

test('any other range gets round edges and loses nothing', () => {
  const values = [-1.3, 0, 0.4, 2.2];
  const { edges, counts } = histogram(values);
  expect(edges[0]).toBeLessThanOrEqual(-1.3);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(values.length);
  expect(histogram([]).counts).toEqual([]);
  expect(histogram([3]).counts.reduce((sum, count) => sum + count, 0)).toBe(1);
});
