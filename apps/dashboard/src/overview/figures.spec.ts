import { describe, expect, test } from 'vitest';
import { formatAxis, formatDenominator, formatFigure } from './figures.ts';

describe('figures', () => {
  test.each([
    ['reward_mean', 3, '3.00'],
    ['reward_min', -5, '−5.00'],
    ['avg@n', -2.8667, '−2.87'],
    ['reward_p90', -1, '−1.00'],
    ['reward_mean', -26.41, '−26.4'],
    ['reward_mean', -12_345, '−12.3k'],
    ['reward_std', 0.4963, '.496'],
    // A whole number of a trainer may be a count.
    ['environment/turns', 3, '3'],
    ['turns', 5.5312, '5.53'],
  ])('%s of %s is formatted as %s', (key, value, text) => {
    expect(formatFigure(key, value)).toBe(text);
  });

  test.each([
    [0.25, '.25'],
    [-0.5, '−.5'],
    [-1500, '−1.5k'],
    [50_000_000, '50M'],
    [2e9, '2G'],
  ])('%s on an axis is formatted as %s', (value, text) => {
    expect(formatAxis('reward_mean', value)).toBe(text);
  });

  test('denominators use the singular and the plural of their unit', () => {
    expect(formatDenominator({ key: 'reward_mean', denominator: 1, of: 1 })).toBe('n 1 rollout');
    expect(formatDenominator({ key: 'zero_variance', denominator: 0, of: 1 })).toBe('n 0 of 1 group');
    expect(formatDenominator({ key: 'reward_mean', denominator: 1, of: 8 })).toBe('n 1 of 8 rollouts');
  });
});
