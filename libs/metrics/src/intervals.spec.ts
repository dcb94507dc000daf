import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { binWidth, histogram, mergeHistograms, percentileOfHistogram } from './histogram.ts';
import { type GroupClass, passInterval, passIntervals, wilsonInterval } from './intervals.ts';
import { binomial, uniform } from './random.ts';
import { max, mean, min, percentile, percentileOfCounts, std } from './summary.ts';
import { cpuTime } from '../../../tests/support/cpu-time.ts';

const each = (classes: readonly GroupClass[]) => classes.flatMap(({ n, c, groups }) => Array.from({ length: groups }, () => ({ n, c })));

describe('passIntervals', () => {
  const some: GroupClass[] = [0, 1, 2, 3, 4].map((c) => ({ n: 4, c, groups: 7 * (c + 1) }));

  test('bootstrap the groups themselves while there are few', () => {
    const classes = [...some, { n: 2, c: 1, groups: 9 }];
    const intervals = passIntervals(classes, [1, 2, 4, 8]);
    for (const k of [1, 2, 4]) expect(intervals.get(k)).toEqual(passInterval(each(classes), k));
    expect(intervals.get(8)).toBeNull();
    expect(passIntervals([{ n: 4, c: 1, groups: 1 }], [1]).get(1)).toBeNull();
  });

  test('are the same bootstrap for many groups, equal every time and in any order of classes', () => {
    const classes = some.map((one) => ({ ...one, groups: one.groups * 29 }));
    const many = each(classes);
    expect(many.length).toBeGreaterThan(3_000);
    const intervals = passIntervals(classes, [1, 4]);
    for (const k of [1, 4]) {
      const [named, drawn] = [passInterval(many, k)!, intervals.get(k)!];
      // Two estimates of one quantile from 1000 draws differ by some per cent of the interval's width.
      const tolerance = 0.12 * (named.high - named.low);
      expect(Math.abs(drawn.low - named.low)).toBeLessThan(tolerance);
      expect(Math.abs(drawn.high - named.high)).toBeLessThan(tolerance);
    }
    expect(passIntervals(classes.toReversed(), [1, 4])).toEqual(intervals);
  });

  test('take no longer for a hundred thousand groups than for a thousand', () => {
    const started = cpuTime();
    passIntervals(
      some.map((one) => ({ ...one, groups: one.groups * 1_000 })),
      [1, 2, 4],
    );
    expect(cpuTime() - started).toBeLessThan(500);
  });
});

test.each([
  [1, 0.3],
  [12, 0.9],
  [40, 0.04],
  [60, 0.5],
  [5_000, 0.2],
  [100_000, 0.97],
])('binomial(%d, %d) has the mean and deviation of its distribution', (n, p) => {
  const random = uniform(7);
  const drawn = Array.from({ length: 20_000 }, () => binomial(n, p, random));
  const deviation = Math.sqrt(n * p * (1 - p));
  expect(min(drawn)).toBeGreaterThanOrEqual(0);
  expect(max(drawn)).toBeLessThanOrEqual(n);
  expect(Math.abs(mean(drawn)! - n * p)).toBeLessThan((5 * deviation) / Math.sqrt(20_000));
  expect(std(drawn, 0)! / deviation).toBeCloseTo(1, 1);
});

test.each([
  [40, 116, 0.264_557_539_134_593_84, 0.435_045_583_572_190_64],
  [0, 10, 0, 0.277_532_799_862_889_26],
  [7, 7, 0.645_669_564_933_312_6, 1],
])('the interval of %d in %d is that of scipy.stats.binomtest(...).proportion_ci(method="wilson")', (hits, count, low, high) => {
  const found = wilsonInterval(hits, count)!;
  expect(found.low).toBeCloseTo(low, 12);
  expect(found.high).toBeCloseTo(high, 12);
  expect(wilsonInterval(0, 0)).toBeNull();
});

describe('percentiles', () => {
  const values = fc.array(fc.double({ min: -9, max: 9, noNaN: true }), { minLength: 1, maxLength: 60 });
  const q = fc.constantFrom(0, 0.1, 0.25, 0.5, 0.75, 0.9, 1);

  test('of counted values equal those of the values', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: -4, max: 4 }), fc.nat(5))), q, (counted, at) => {
        const all = counted.flatMap(([value, count]) => Array.from({ length: count }, () => value));
        expect(percentileOfCounts(counted, at)).toBe(percentile(all, at));
      }),
    );
  });

  test('of merged histograms are at most one bin from the exact ones', () => {
    fc.assert(
      fc.property(values, values, q, (a, b, at) => {
        const merged = mergeHistograms(histogram(a), histogram(b));
        const all = [...a, ...b];
        const found = percentileOfHistogram(merged, at, min(all)!, max(all)!)!;
        expect(Math.abs(found - percentile(all, at)!)).toBeLessThanOrEqual(binWidth(merged) * (1 + 1e-9));
      }),
    );
    expect(percentileOfHistogram(histogram([]), 0.5)).toBeNull();
  });
});
