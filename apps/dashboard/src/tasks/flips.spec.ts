import { expect, test } from 'vitest';
import { changeBetween, difficultyOf, rateWithin, visitNear } from './flips.ts';

const strip = (step: number[], solve: (number | null)[], scored = solve.map((rate) => (rate === null ? 0 : 4))) => ({
  step,
  solve,
  scored,
});
const rotating = strip([3, 8, 13, 18], [0, 0.5, null, 0.25]);

test('the nearest scored visit stands for an end of the window, on either side', () => {
  const near = (end: number, from = 0, to = 19) => visitNear(rotating, end, [from, to])?.step;
  expect([near(0), near(5), near(13), near(19), near(99)]).toEqual([3, 3, 8, 18, 18]);
  // Steps 8 and 18 are equally near to 13; the one inside of the window wins.
  expect([near(13, 13, 19), near(13, 0, 13)]).toEqual([18, 8]);
  expect(visitNear(strip([5], [null]), 5, [0, 9])).toBe(null);
});

test('between the ends a task is gained, lost, the same, or visited once, at steps that are named', () => {
  const kind = (from: number, to: number, of = rotating) => changeBetween(of, from, to).kind;
  expect(changeBetween(rotating, 0, 10)).toEqual({ kind: 'gained', before: { step: 3, rate: 0 }, after: { step: 8, rate: 0.5 } });
  expect(kind(8, 19)).toBe('lost');
  expect(kind(0, 19)).toBe('same');
  expect(kind(4, 5)).toBe('single');
  expect(kind(0, 19, strip([5], [1]))).toBe('single');
  expect(kind(0, 19, strip([5, 6], [null, null]))).toBe('none');
});

test('every task that rotates has a change between the first and the last step', () => {
  const tasks = Array.from({ length: 25 }, (_, task) => {
    const steps = [0, 1, 2, 3].map((visit) => (task % 5) + 5 * visit);
    return strip(steps, [0, 0, 1, 1]);
  });
  expect(tasks.map((each) => changeBetween(each, 0, 19).kind)).toEqual(tasks.map(() => 'gained'));
});

test('the solve rate of a window has its visits only', () => {
  expect(rateWithin(rotating, 0, 10)).toMatchObject({ rate: 0.25, successes: 2, scored: 8 });
  expect(rateWithin(rotating, 9, 14)).toBe(null);
});

test('difficulty is as certain as the interval', () => {
  const of = (rate: number, low: number, high: number) => difficultyOf({ rate, low, high });
  expect([of(0, 0, 0.4), of(0.2, 0.1, 0.4), of(0.4, 0.2, 0.6), of(0.8, 0.6, 0.9), of(1, 0.6, 1)]).toEqual([
    'Unsolved',
    'Hard',
    'Medium',
    'Easy',
    'Solved',
  ]);
});
