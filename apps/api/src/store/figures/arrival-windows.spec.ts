import fc from 'fast-check';
import { expect, test } from 'vitest';
import { widthInWords, windowWidth } from './arrival-windows.ts';

test('windows are neither too many nor too small', () => {
  const gaps = fc.array(fc.oneof(fc.nat(2_000), fc.nat(10_000_000)), { minLength: 1, maxLength: 400 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1.8e12 }), gaps, (start, steps) => {
      let at = start;
      const times = steps.map((gap) => (at += gap));
      const width = windowWidth({ count: times.length, first: times[0]!, last: at });
      const windows = (of: number) => new Set(times.map((time) => Math.floor(time / of))).size;
      const most = Math.max(1, Math.min(100, Math.floor(times.length / 8)));
      expect(windows(width)).toBeLessThanOrEqual(Math.max(2, most));
    }),
  );
});

test.each([
  [1_000, '1 s'],
  [300_000, '5 min'],
  [7_200_000, '2 h'],
  [86_400_000, '1 d'],
])('%d ms is %s', (width, words) => expect(widthInWords(width)).toBe(words));

test.each([
  [{ count: 800, first: 0, last: 99_999 }, 1_000],
  [{ count: 800, first: 0, last: 100_000 }, 2_000],
  [{ count: 16, first: 0, last: 119_999 }, 60_000],
  [{ count: 8, first: 0, last: 999 }, 1_000],
])('the width for %j is the smallest that fits', (arrivals, width) => expect(windowWidth(arrivals)).toBe(width));
