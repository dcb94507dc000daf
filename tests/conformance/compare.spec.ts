import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { bootstrapOfRuns, bootstrapOfTasks } from '../../libs/metrics/src/compare/bootstrap.ts';
import { detectable, tasksNeeded } from '../../libs/metrics/src/compare/power.ts';
import { holm, mcnemar, pairedEstimate, sampleOf, welchEstimate } from '../../libs/metrics/src/compare/tests.ts';
import { clusteredProportion } from '../../libs/metrics/src/proportion.ts';
import { uniform } from '../../libs/metrics/src/random.ts';
import { runScript } from './support/python.ts';

/** The statistics of comparisons (docs/reference/metrics.md#comparisons) against scipy, statsmodels and NumPy on random data. */
const random = uniform(20_271);
const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
const list = <T>(count: number, one: () => T) => Array.from({ length: count }, one);
/** Rewards as runs have them: shares of successes, or numbers of any scale. */
const values = (count: number) => {
  const scale = 10 ** between(-3, 3);
  return random() < 0.5 ? list(count, () => between(0, 8) / 8) : list(count, () => (random() - 0.3) * scale);
};
/** scipy has no interval without variance; ours is tested in libs/metrics. */
const varied = (count: number): number[] => {
  const drawn = values(count);
  return sampleOf(drawn).variance! > 0 ? drawn : varied(count);
};

const data = {
  paired: [[0, 1], ...list(40, () => varied(between(2, 200)))],
  welch: list(40, () => [varied(between(2, 60)), varied(between(2, 200))] as const),
  flips: [[0, 0], [1, 0], [0, 6], [12, 13], [13, 13], [0, 400], ...list(30, () => [between(0, 40), between(0, 40)])] as [number, number][],
  holm: list(20, () => list(between(1, 12), () => random() ** 3)),
  power: list(30, () => [(random() - 0.5) * 2, 0.05 + random()] as const),
  degrees: [2, 3, 4, 8, 20, 75, 300, 2_000, 4_999],
  rates: [
    [[4, 0]],
    [
      [8, 8],
      [3, 3],
    ],
    ...list(60, () =>
      list(between(1, 30), (): [number, number] => {
        const scored = between(1, 9);
        return [scored, between(0, scored)];
      }),
    ),
  ] as [number, number][][],
};

let theirs: {
  paired: number[][];
  welch: number[][];
  flips: number[];
  holm: number[][];
  power: number[];
  degrees: number[];
  rates: number[][];
};

function finish<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Equal but for the accuracy of the approximations of the distributions. */
function expectClose(ours: number | null | undefined, expected: number, tolerance = 1e-6) {
  expect(Math.abs(ours! - expected), `${ours} instead of ${expected}`).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(expected)));
}

beforeAll(async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'palestra-compare-'));
  try {
    const file = path.join(folder, 'data.json');
    await writeFile(file, JSON.stringify(data));
    theirs = (await runScript('stats', 'compare_stats.py', [file], {})) as typeof theirs;
  } finally {
    await rm(folder, { recursive: true });
  }
});

describe('comparisons agree with scipy, statsmodels and NumPy', () => {
  test('paired t interval, p value and the bootstrap of tasks', () => {
    for (const [at, differences] of data.paired.entries()) {
      const [difference, low, high, p, bootLow, bootHigh] = theirs.paired[at]!;
      const ours = pairedEstimate(differences)!;
      expectClose(ours.difference, difference!);
      expectClose(ours.low, low!);
      expectClose(ours.high, high!);
      expectClose(ours.p, p!);
      const bootstrap = finish(bootstrapOfTasks(differences))!;
      expectClose(bootstrap.low, bootLow!, 1e-12);
      expectClose(bootstrap.high, bootHigh!, 1e-12);
    }
  });

  test('Welch interval, p value, degrees of freedom and the bootstrap of independent runs', () => {
    for (const [at, [first, other]] of data.welch.entries()) {
      const [difference, low, high, p, df, bootLow, bootHigh] = theirs.welch[at]!;
      const ours = welchEstimate(sampleOf(first), sampleOf(other))!;
      expectClose(ours.difference, difference!);
      expectClose(ours.low, low!);
      expectClose(ours.high, high!);
      expectClose(ours.p, p!);
      expectClose(ours.df, df!);
      const bootstrap = finish(bootstrapOfRuns(first, other))!;
      expectClose(bootstrap.low, bootLow!, 1e-12);
      expectClose(bootstrap.high, bootHigh!, 1e-12);
    }
  });

  test('McNemar, exact and approximate', () => {
    for (const [at, [lost, gained]] of data.flips.entries()) expectClose(mcnemar(lost, gained).p, theirs.flips[at]!);
  });

  test("Holm's correction", () => {
    for (const [at, ps] of data.holm.entries())
      for (const [i, corrected] of holm(ps).entries()) expectClose(corrected, theirs.holm[at]![i]!, 1e-12);
  });

  test('solve rates with Wilson’s interval for the effective number of rollouts', () => {
    for (const [at, visits] of data.rates.entries()) {
      const [rate, effective, low, high] = theirs.rates[at]!;
      const ours = clusteredProportion(visits.map(([scored, successes]) => ({ scored, successes })))!;
      expectClose(ours.rate, rate!);
      expectClose(ours.effective, effective!);
      expectClose(ours.low, low!);
      expectClose(ours.high, high!);
    }
  });

  test('power: detectable differences and needed tasks', () => {
    for (const [at, count] of data.degrees.entries()) expectClose(detectable(count - 1), theirs.degrees[at]!, 1e-4);
    // Where the power is 80 % but for rounding, one task more or less is right too.
    for (const [at, [difference, deviation]] of data.power.entries())
      expect(Math.abs(tasksNeeded(difference, deviation)! - theirs.power[at]!)).toBeLessThanOrEqual(
        theirs.power[at]! > 5_000 ? theirs.power[at]! * 1e-3 : 0,
      );
  });
});
