import { expect, test } from 'vitest';
import { GrowingTimes } from './growing-times.ts';

const read = (stamps: number[]): number[] => {
  const growing = new GrowingTimes();
  return stamps.map((stamp) => growing.next(stamp));
};

test('lines of one moment get times that grow, and a line after a pause keeps its own', () => {
  expect(read([5_000, 5_000, 5_000, 5_001, 9_000])).toEqual([5_000, 5_001, 5_002, 5_003, 9_000]);
  // The clock was set back.
  expect(read([5_000, 1_000, 1_000])).toEqual([5_000, 5_000, 5_000]);
});

test('every reader that stopped continues with the next line, also where lines crowd at the end of a second', () => {
  for (const crowd of [[5_999], [5_980, 5_999], [5_000], [6_000, 6_000]]) {
    const stamps = [4_000, ...crowd.flatMap((at) => Array<number>(450).fill(at)), 6_003, 7_500];
    const times = read(stamps);
    expect(new Set(times).size).toBe(times.length);
    for (const [index, time] of times.entries()) {
      const first = stamps.findIndex((stamp) => stamp >= GrowingTimes.startOf(time) * 1_000);
      expect(read(stamps.slice(first)).filter((again) => again > time)).toEqual(times.slice(index + 1));
    }
  }
});

test('a flood does not lead into the future', () => {
  const times = read([...Array<number>(5_000).fill(5_000), 6_500]);
  expect(times.at(-2)).toBe(5_999);
  expect(times.at(-1)).toBe(6_500);
});
