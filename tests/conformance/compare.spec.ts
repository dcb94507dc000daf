import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { bootstrapOfRuns, bootstrapOfTasks } from '../../libs/metrics/src/compare/bootstrap.ts';
import { detectable, tasksNeeded } from '../../libs/metrics/src/compare/power.ts';
import { holm, mcnemar, pairedEstimate, sampleOf, welchEstimate } from '../../libs/metrics/src/compare/tests.ts';
import { groupBy } from '../../libs/metrics/src/group-by.ts';
import { clusteredProportion, wilsonInterval } from '../../libs/metrics/src/proportion.ts';
import { changeOf, newcombeInterval } from '../../libs/metrics/src/moves/causes.ts';
import { momentsOf } from '../../libs/metrics/src/moves/moments.ts';
import { pooledEstimate } from '../../libs/metrics/src/moves/moves.ts';
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
  pooled: list(30, () => [list(between(2, 40), () => varied(between(2, 9))), list(between(1, 12), () => varied(between(2, 9)))] as const),
  // Groups of one side, in which some properties keep together: [reward, has the property, is now, group].
  effects: list(30, () => {
    const chance = random();
    const together = random();
    const groups = list(between(8, 60), () => ({ now: random() < 0.3 ? 1 : 0, has: random() < chance ? 1 : 0, level: values(1)[0]! }));
    // Each combination occurs, in two groups of each side.
    const sides = [...groups, ...[0, 1, 0, 1].map((now) => ({ now, has: 0, level: 0 }))];
    return sides.flatMap(({ now, has, level }, group) => {
      const own = list(between(1, 8), () => [level + values(1)[0]!, random() < together ? has : random() < chance ? 1 : 0, now, group]);
      return group < groups.length ? own : [...own, [0, 0, now, group], [1, 1, now, group]];
    }) as [number, number, number, number][];
  }),
  shares: list(40, () => {
    const [a, b] = [between(1, 400), between(1, 100)];
    return [between(0, a), a, between(0, b), b] as [number, number, number, number];
  }),
};

let theirs: {
  paired: number[][];
  welch: number[][];
  flips: number[];
  holm: number[][];
  power: number[];
  degrees: number[];
  rates: number[][];
  pooled: number[][];
  effects: number[][];
  shares: number[][];
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

  test('moves: the difference of a step by weighted least squares over groups', () => {
    const sums = (groups: readonly (readonly number[])[]) => {
      const total = (of: (group: readonly number[]) => number) => groups.reduce((all, group) => all + of(group), 0);
      const sum = (group: readonly number[]) => group.reduce((all, reward) => all + reward, 0);
      return {
        groups: groups.length,
        rollouts: total((group) => group.length),
        sum: total(sum),
        squares: total((group) => sum(group) ** 2 / group.length),
      };
    };
    for (const [at, [before, now]] of data.pooled.entries()) {
      const ours = pooledEstimate(sums(before), sums(now));
      const found = [ours.difference, ours.low, ours.high, ours.p, ours.df];
      for (const [i, value] of found.entries()) expectClose(value, theirs.pooled[at]![i]!);
    }
  });

  test('causes: the effect of a property and its part, clustered by group, and intervals of shares', () => {
    for (const [at, rows] of data.effects.entries()) {
      type Row = (typeof rows)[number];
      const sums = (members: readonly Row[]) => {
        const having = members.filter(([, has]) => has === 1);
        const sum = (of: readonly Row[]) => of.reduce((total, [reward]) => total + reward, 0);
        return { n: members.length, s: sum(members), n1: having.length, s1: sum(having) };
      };
      // Groups with an even number are of one environment, the others of another.
      const side = (now: number) => {
        const own = rows.filter((row) => row[2] === now);
        return [...groupBy(own, (row) => row[3] % 2).values()].map((stratum) =>
          momentsOf([...groupBy(stratum, (row) => row[3]).values()].map(sums)),
        );
      };
      const { effect, share, contribution } = changeOf({ now: side(1), before: side(0) })!;
      const ours = [effect, contribution!.value, contribution!.low, contribution!.high, contribution!.p, share.low, share.high];
      for (const [i, value] of ours.entries()) expectClose(value, theirs.effects[at]![i]!);
    }
    for (const [at, [first, ofFirst, other, ofOther]] of data.shares.entries()) {
      const [low, high, wilsonLow, wilsonHigh] = theirs.shares[at]!;
      const ours = newcombeInterval({ share: first / ofFirst, of: ofFirst }, { share: other / ofOther, of: ofOther });
      expectClose(ours.low, low!);
      expectClose(ours.high, high!);
      expectClose(wilsonInterval(first / ofFirst, ofFirst).low, wilsonLow!);
      expectClose(wilsonInterval(first / ofFirst, ofFirst).high, wilsonHigh!);
    }
  });
});
