import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextAttempt } from './webhook-schedule.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
/** Pauses of a message whose receiver asks to wait that long after each attempt. */
function pausesOf(retryAfterS: (tries: number) => number): number[] {
  const pauses: number[] = [];
  let tries = 1;
  for (;;) {
    const next = nextAttempt(tries, retryAfterS(tries));
    if (next === null) return pauses;
    pauses.push(next.inS);
    // Taking it counts the attempt.
    tries = next.tries + 1;
  }
}
const sumOf = (pauses: readonly number[]): number => pauses.reduce((sum, pause) => sum + pause, 0);

test('ten attempts are spread over about a day', () => {
  expect(pausesOf(() => 0)).toEqual([5, 30, 120, 600, 1_800, 2 * HOUR, 5 * HOUR, 8 * HOUR, 8 * HOUR]);
});

test('a receiver that asks for an hour is not asked sooner, and the attempts of that hour are left out', () => {
  expect(nextAttempt(1, HOUR)).toEqual({ inS: HOUR, tries: 6 });
  expect(nextAttempt(1, 1)).toEqual({ inS: 5, tries: 1 });
  expect(nextAttempt(1, 5)).toEqual({ inS: 5, tries: 1 });
  expect(nextAttempt(1, 6)).toEqual({ inS: 6, tries: 2 });
});

test('no wait is longer than what is left of the day, and an attempt follows it', () => {
  const all = sumOf(pausesOf(() => 0));
  expect(nextAttempt(1, Infinity)).toEqual({ inS: all, tries: 9 });
  expect(pausesOf(() => Infinity)).toEqual([all]);
});

test('whatever a receiver asks, each wait is as long as asked or the rest of the day, and all waits together are about a day', () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.oneof(fc.nat(60), fc.nat(2 * DAY))), (asked) => {
      const wanted: number[] = [];
      const pauses = pausesOf(() => {
        wanted.push(asked.next().value as number);
        return wanted.at(-1)!;
      });
      expect(sumOf(pauses)).toBeLessThan(DAY);
      for (const [at, pause] of pauses.entries()) if (at < pauses.length - 1) expect(pause).toBeGreaterThanOrEqual(wanted[at]!);
    }),
  );
});
