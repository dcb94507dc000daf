import { expect, test } from 'vitest';
import { changeBetween, rateUpTo } from './flips.ts';

const strip = { step: [0, 10, 20, 30], solve: [0, 0.5, null, 0.25] };

test('the rate of a task is that of its last scored step', () => {
  expect([rateUpTo(strip, 9), rateUpTo(strip, 10), rateUpTo(strip, 25), rateUpTo(strip, 99)]).toEqual([0, 0.5, 0.5, 0.25]);
  expect(rateUpTo({ step: [5], solve: [1] }, 4)).toBe(null);
});

test('between two steps a task is gained, lost, the same, or unknown', () => {
  expect(changeBetween(strip, 0, 20)).toBe('gained');
  expect(changeBetween(strip, 20, 30)).toBe('lost');
  expect(changeBetween(strip, 10, 20)).toBe('same');
  expect(changeBetween({ step: [5], solve: [1] }, 4, 9)).toBe('unknown');
});
