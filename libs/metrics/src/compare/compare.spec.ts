import { describe, expect, test } from 'vitest';
import { uniform } from '../random.ts';
import { bootstrapOfTasks } from './bootstrap.ts';
import { bootstrapOf, type Cell, compare, type Comparison, type RunCells } from './compare.ts';
import { detectable, powerOfT, tasksNeeded } from './power.ts';
import { holm, mcnemar, pairedEstimate, sampleOf, welchEstimate } from './tests.ts';
import { powerInWords } from './words.ts';

function finish<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

const cellsOf = (tasks: Record<string, readonly number[]>): RunCells => ({
  tasks: new Map(Object.entries(tasks).map(([task, values]): [string, Cell] => [task, { ...sampleOf(values), environment: null }])),
  rollouts: Object.keys(tasks).length === 0 ? null : sampleOf(Object.values(tasks).flat()),
});

/** Two runs of the same tasks: tasks differ much, the second run is better by `gain` in each. */
function planted(tasks: number, samples: number, gain: number): [RunCells, RunCells] {
  const random = uniform(7);
  const levels = Array.from({ length: tasks }, () => 0.1 + 0.6 * random());
  const run = (more: number) =>
    cellsOf(
      Object.fromEntries(
        levels.map((level, task) => [String(task), Array.from({ length: samples }, () => (random() < level + more ? 1 : 0))]),
      ),
    );
  return [run(0), run(gain)];
}

/** Every number of an answer is finite. */
function expectFinite(value: unknown): void {
  if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true);
  if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) expectFinite(part);
}

describe('two runs', () => {
  test('of the same tasks are paired, and the interval is at most 0.7 of the unpaired one', () => {
    const [first, other] = planted(60, 16, 0.1);
    const found = compare(first, other)!;
    expect(found).toMatchObject({ method: 'paired', first: { tasks: 60, samples: 960 }, other: { tasks: 60, samples: 960 }, df: 59 });
    expect(found.high! - found.low!).toBeLessThan(0.7 * (found.unpaired!.high - found.unpaired!.low));
    expect(found.low).toBeGreaterThan(0);
    expect(found.high).toBeLessThan(0.2);
    const bootstrap = finish(bootstrapOf(first, other, 'paired'))!;
    expect(bootstrap.low).toBeCloseTo(found.low!, 1);
    expect(bootstrap.high).toBeCloseTo(found.high!, 1);
  });

  test('that share few of their tasks are compared as independent', () => {
    const of = (from: number, to: number) =>
      cellsOf(Object.fromEntries(Array.from({ length: to - from }, (_, at) => [String(from + at), [at % 3 === 0 ? 1 : 0, at % 2]])));
    expect(compare(of(0, 10), of(8, 18))!).toMatchObject({ method: 'unpaired', first: { tasks: 10 }, other: { tasks: 10 } });
    expect(compare(of(0, 10), of(5, 18))!).toMatchObject({ method: 'paired', first: { tasks: 5 } });
    expect(compare(of(0, 200), of(180, 380))!).toMatchObject({ method: 'paired', first: { tasks: 20 } });
  });

  test.each<[string, Record<string, number[]>, Record<string, number[]>, Partial<Comparison> | null]>([
    ['one common task', { a: [0, 1, 1, 0] }, { a: [1, 1, 1, 0] }, { method: 'rollouts', difference: 0.25 }],
    ['one rollout each', { a: [0] }, { a: [1] }, { method: 'rollouts', difference: 1, low: null, high: null, p: null, power: null }],
    ['no common task', { a: [0, 1], b: [1, 1] }, { c: [1, 1], d: [0, 0] }, { method: 'unpaired', difference: -0.25 }],
    ['all solved', { a: [1, 1], b: [1, 1] }, { a: [1, 1], b: [1, 1] }, { method: 'paired', difference: 0, low: 0, high: 0, p: 1 }],
    [
      'no variance of differences',
      { a: [0, 0], b: [0.5, 0.5] },
      { a: [0.25, 0.25], b: [0.75, 0.75] },
      { difference: 0.25, low: 0.25, high: 0.25, p: 0 },
    ],
    ['an empty run', {}, { a: [1] }, null],
    ['extreme rewards', { a: [1e100, -1e100], b: [0, 1] }, { a: [1e100, 1e100], b: [1, 1] }, { method: 'paired' }],
    ['tiny differences', { a: [1e-200, 0], b: [0, 0] }, { a: [0, 0], b: [0, 0] }, { method: 'paired' }],
  ])('%s: no number is NaN or infinite', (_name, first, other, expected) => {
    const found = compare(cellsOf(first), cellsOf(other));
    if (expected === null) expect(found).toBeNull();
    else expect(found).toMatchObject(expected);
    expectFinite(found);
    if (found) expect(powerInWords(found, String)).not.toMatch(/NaN|Infinity/);
  });
});

describe('power', () => {
  test('is 80 % at the detectable difference, and the needed tasks just reach it', () => {
    for (const df of [1, 4, 30, 400]) expect(powerOfT(detectable(df), df)).toBeCloseTo(0.8, 6);
    for (const [difference, deviation] of [
      [0.5, 1],
      [0.02, 0.3],
      [-2, 1],
    ] as const) {
      const count = tasksNeeded(difference, deviation)!;
      const power = (tasks: number) => powerOfT((Math.abs(difference) / deviation) * Math.sqrt(tasks), tasks - 1);
      expect(power(count)).toBeGreaterThanOrEqual(0.8);
      if (count > 2) expect(power(count - 1)).toBeLessThan(0.8);
    }
    expect(tasksNeeded(0, 1)).toBeNull();
    expect(tasksNeeded(1e-9, 1)).toBeNull();
  });

  test('says how many tasks or samples the present difference needs', () => {
    const [first, other] = planted(40, 4, 0.03);
    const found = compare(first, other)!;
    expect(found.power).toMatchObject({ resolved: false });
    expect(found.power!.needed).toBeGreaterThan(40);
    expect(powerInWords(found, String)).toMatch(
      /^A true difference of 0\.\d+ is detected in 80 % of comparisons like this one\. The present difference of 0\.\d+ needs about [\d,]+ tasks in each run \([\d,]+ more\)/,
    );
  });

  test('more samples per task help as long as the noise is within tasks', () => {
    const noisy = cellsOf({ a: [0, 1], b: [0, 1], c: [0, 1], d: [1, 1], e: [0, 1] });
    const better = cellsOf({ a: [1, 1], b: [0, 1], c: [1, 1], d: [0, 1], e: [1, 1] });
    const found = compare(noisy, better)!;
    expect(found.power!.samplesNeeded).toBeGreaterThan(2);
    // Two tasks that differ in opposite directions without noise: no number of samples helps.
    const still = compare(cellsOf({ a: [0, 0], b: [1, 1], c: [0, 0] }), cellsOf({ a: [1, 1], b: [0, 0], c: [1, 1] }))!;
    expect(still.power!.samplesNeeded).toBeNull();
  });
});

test('McNemar is exact for few changes, and corrected above', () => {
  expect(mcnemar(0, 0)).toEqual({ p: 1, exact: true });
  expect(mcnemar(0, 5).p).toBeCloseTo(0.0625, 12);
  expect(mcnemar(3, 3)).toEqual({ p: 1, exact: true });
  expect(mcnemar(10, 30)).toMatchObject({ exact: false });
  expect(mcnemar(10, 30).p).toBeCloseTo(0.002_663, 5);
});

test('Holm corrects each p value for those that remain, and keeps unknown ones', () => {
  expect(holm([0.01, 0.04, 0.03, null])).toEqual([0.03, 0.06, 0.06, null]);
  expect(holm([0.9, 0.8])).toEqual([1, 1]);
  expect(holm([])).toEqual([]);
});

test('estimates without enough values have no interval', () => {
  expect(pairedEstimate([])).toBeNull();
  expect(pairedEstimate([0.5])).toEqual({ difference: 0.5, low: null, high: null, p: null, error: null, df: null });
  expect(welchEstimate(sampleOf([]), sampleOf([1]))).toBeNull();
  expect(welchEstimate(sampleOf([1]), sampleOf([1, 2]))).toMatchObject({ difference: 0.5, low: null });
});

test('the bootstrap is reproducible, independent of the order of tasks, and pauses', () => {
  const values = Array.from({ length: 1_000 }, (_, at) => (at * 37) % 101);
  const interval = finish(bootstrapOfTasks(values));
  expect(finish(bootstrapOfTasks(values.toReversed()))).toEqual(interval);
  expect(finish(bootstrapOfTasks([1]))).toBeNull();
  let pauses = 0;
  for (const work = bootstrapOfTasks(values); work.next().done === false;) pauses += 1;
  expect(pauses).toBe(10);
});
