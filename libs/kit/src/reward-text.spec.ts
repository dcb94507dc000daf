import { expect, test } from 'vitest';
import { formatReward, withoutNoise } from './reward-text.ts';

test.each([
  [null, '–'],
  [undefined, '–'],
  [Number.NaN, '–'],
  [Infinity, '–'],
  [0, '0'],
  [-0, '0'],
  [0.0001, '<.001'],
  [-0.0001, '>−.001'],
  [0.001, '.00100'],
  [0.05, '.0500'],
  [0.612, '.612'],
  [0.9500000000000001, '.950'],
  [0.9999, '1.00'],
  [1, '1.00'],
  [-0.5, '−.500'],
  [12.345, '12.3'],
  [999.4, '999'],
  [12_345, '12.3k'],
])('%s is formatted as %s', (value, text) => {
  expect(formatReward(value)).toBe(text);
});

test('only a difference has a plus sign', () => {
  expect(formatReward(0.02, { signed: true })).toBe('+.0200');
  expect(formatReward(-0.02, { signed: true })).toBe('−.0200');
  expect(formatReward(0, { signed: true })).toBe('0');
});

test('sums lose their noise and nothing else', () => {
  expect(withoutNoise(0.05 + 0.9)).toBe(0.95);
  expect(withoutNoise(1 / 3)).toBe(0.333333333333);
  expect(withoutNoise(-0.1 - 0.2)).toBe(-0.3);
  expect(withoutNoise(null)).toBeNull();
  expect(withoutNoise(123_456_789_012)).toBe(123_456_789_012);
});
