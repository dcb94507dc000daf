import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byWindow, widthInWords, windowWidth } from './arrival-windows.ts';
import type { RollupTuple } from './rollup.sql.ts';

const tuplesOf = (times: readonly number[]) =>
  times.map((time, at) => Object.assign([], { 0: String(at + 1), 22: time }) as unknown as RollupTuple);

test('windows hold every rollout once, begin at multiples of their width, and are neither too many nor too small', () => {
  const gaps = fc.array(fc.oneof(fc.nat(2_000), fc.nat(10_000_000)), { minLength: 1, maxLength: 400 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1.8e12 }), gaps, (start, steps) => {
      let at = start;
      const times = steps.map((gap) => (at += gap));
      const width = windowWidth(times);
      const windows = byWindow(tuplesOf(times), width);
      expect(windows.flatMap(({ tuples }) => tuples.map((tuple) => tuple[22]))).toEqual(times);
      for (const { from, to, tuples, first_seq, last_seq } of windows) {
        expect([from % width, to - from]).toEqual([0, width]);
        expect(tuples.every((tuple) => tuple[22] >= from && tuple[22] < to)).toBe(true);
        expect([first_seq, last_seq]).toEqual([tuples[0]![0], tuples.at(-1)![0]]);
      }
      expect(windows.length).toBeLessThanOrEqual(Math.max(2, Math.min(100, times.length / 8)));
    }),
  );
});

test.each([
  [1_000, '1 s'],
  [300_000, '5 min'],
  [7_200_000, '2 h'],
  [86_400_000, '1 d'],
])('%d ms are %s', (width, words) => expect(widthInWords(width)).toBe(words));
