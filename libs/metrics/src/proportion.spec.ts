import { expect, test } from 'vitest';
import { clusteredProportion, wilsonInterval } from './proportion.ts';

test('Wilson’s interval has the published values and stays within 0 and 1', () => {
  // Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
  const published = [
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ] as const;
  for (const [successes, count, low, high] of published) {
    const interval = wilsonInterval(successes / count, count);
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  }
});

test('equal samples of a cluster count once', () => {
  const alike = [
    { scored: 4, successes: 4 },
    { scored: 4, successes: 0 },
    { scored: 4, successes: 4 },
    { scored: 4, successes: 0 },
  ];
  // Σ(c − pn)² = 16, G/(G−1) = 4/3, N = 16: deff = 4/3 · 16/256 · 16/.25 = 16/3.
  expect(clusteredProportion(alike)).toMatchObject({ rate: 0.5, successes: 8, scored: 16, effective: expect.closeTo(3, 10) });
  const { low, high } = clusteredProportion(alike)!;
  expect({ low, high }).toEqual(wilsonInterval(0.5, 3));
});

test('the effect is never below 1, and 1 where it is not known', () => {
  const even = [2, 2, 2].map((successes) => ({ scored: 4, successes }));
  expect(clusteredProportion(even)!.effective).toBe(12);
  expect(clusteredProportion([{ scored: 8, successes: 3 }])!.effective).toBe(8);
  expect(
    clusteredProportion([
      { scored: 4, successes: 0 },
      { scored: 3, successes: 0 },
    ]),
  ).toMatchObject({ rate: 0, low: 0, effective: 7 });
  expect(clusteredProportion([{ scored: 0, successes: 0 }])).toBeNull();
  expect(clusteredProportion([])).toBeNull();
});
