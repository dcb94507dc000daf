import { describe, expect, test } from 'vitest';
import type { SampleSums } from '../intervals.ts';
import { uniform } from '../random.ts';
import { changeOf, mixOf, newcombeInterval, rankCauses, type Sides } from './causes.ts';
import { findMoves, pooledEstimate, type StepRewards } from './moves.ts';

/** A step from the rewards of each group. */
function stepOf(step: number, groups: readonly (readonly number[])[]): StepRewards {
  const sums = groups.map((rewards) => ({ count: rewards.length, sum: rewards.reduce((total, reward) => total + reward, 0) }));
  return {
    step,
    groups: groups.length,
    rollouts: sums.reduce((total, { count }) => total + count, 0),
    sum: sums.reduce((total, { sum }) => total + sum, 0),
    squares: sums.reduce((total, { count, sum }) => total + sum ** 2 / count, 0),
  };
}

const sums = (values: readonly number[]): SampleSums => ({
  count: values.length,
  sum: values.reduce((total, value) => total + value, 0),
  sumOfSquares: values.reduce((total, value) => total + value ** 2, 0),
});

/** Groups of four rollouts; tasks differ in difficulty; each step has its own tasks. `gain(step)` is added to the chance of success. */
function run(seed: number, { steps, groups, gain = () => 0 }: { steps: number; groups: number; gain?: (step: number) => number }) {
  const random = uniform(seed);
  return Array.from({ length: steps }, (_, step) =>
    stepOf(
      step,
      Array.from({ length: groups }, () => {
        const level = 0.2 + 0.6 * random() + gain(step);
        return Array.from({ length: 4 }, () => (random() < level ? 1 : 0));
      }),
    ),
  );
}

const moved = (steps: readonly StepRewards[]) => findMoves(steps).flatMap(({ step, moved: is }) => (is ? [step] : []));

describe('which steps moved', () => {
  test('a planted drop is one move, and its end another', () => {
    const steps = run(1, { steps: 30, groups: 16, gain: (step) => (step >= 12 && step < 20 ? -0.45 : 0) });
    expect(moved(steps)).toEqual([12, 20]);
    const [drop, rise] = findMoves(steps).filter((one) => one.moved);
    expect(drop).toMatchObject({ step: 12, baseline: [7, 8, 9, 10, 11], now: { groups: 16, rollouts: 64 }, before: { groups: 80 } });
    expect(drop!.estimate.high).toBeLessThan(0);
    expect(rise!.baseline).toEqual([15, 16, 17, 18, 19]);
    // The step after a move is compared with the moved step, not with those before it.
    expect(findMoves(steps).find(({ step }) => step === 13)!.baseline).toEqual([12]);
  });

  test.each([5, 20, 200])('at most 5 % of the runs of noise with %i steps report a move', (steps) => {
    const runs = 400;
    const shouting = Array.from({ length: runs }, (_, seed) => moved(run(1_000 + seed, { steps, groups: 8 }))).filter(
      (found) => found.length > 0,
    );
    // Three standard errors of a share of 5 % above it.
    expect(shouting.length / runs).toBeLessThanOrEqual(0.05 + 3 * Math.sqrt((0.05 * 0.95) / runs));
  });

  test('one step, equal rewards and steps without rewards report nothing', () => {
    const some = stepOf(3, [
      [0, 1, 1, 0],
      [1, 1, 0, 0],
    ]);
    expect(findMoves([])).toEqual([]);
    expect(findMoves([some])).toEqual([]);
    const equal = Array.from({ length: 9 }, (_, step) =>
      stepOf(
        step,
        Array.from({ length: 7 }, () => [0.1, 0.1, 0.1]),
      ),
    );
    expect(moved(equal)).toEqual([]);
    const gaps = [stepOf(1, []), some, stepOf(4, []), { ...some, step: 5 }];
    expect(findMoves(gaps)).toMatchObject([{ step: 5, baseline: [3], estimate: { difference: 0, p: 1 }, moved: false }]);
  });

  test('a few rollouts that are all alike prove nothing', () => {
    const baseline = Array.from({ length: 5 }, (_, step) => stepOf(step, [[0, 0, 0]]));
    expect(findMoves([...baseline, stepOf(5, [[1, 1, 1], [1]])]).at(-1)).toMatchObject({ corrected: null, moved: false });
    const groups = Array.from({ length: 4 }, () => [1, 1, 1, 1]);
    expect(moved([...baseline, stepOf(5, groups)])).toEqual([5]);
  });

  test('estimates stay finite', () => {
    for (const [before, now] of [
      [[[1e100]], [[-1e100]]],
      [
        [[1e-200, 0], [0]],
        [[0], [0]],
      ],
      [[[0]], [[1]]],
    ] as const) {
      const found = pooledEstimate(stepOf(0, before), stepOf(1, now));
      for (const value of Object.values(found)) expect(value === null || Number.isFinite(value)).toBe(true);
    }
  });
});

describe('what explains a move', () => {
  /** 200 rollouts before, 100 at the step. `bad` has the property and earns nothing; the others earn 1 in `good` of 10 cases. */
  const planted = (badBefore: number, badNow: number, good = 7): { all: Sides; having: Sides } => {
    const rewards = (count: number, bad: number) => Array.from({ length: count }, (_, at) => (at < bad ? 0 : at % 10 < good ? 1 : 0));
    const [before, now] = [rewards(200, badBefore), rewards(100, badNow)];
    return {
      all: { now: sums(now), before: sums(before) },
      having: { now: sums(now.slice(0, badNow)), before: sums(before.slice(0, badBefore)) },
    };
  };

  test('a property that became common among failing rollouts explains the change', () => {
    const { all, having } = planted(4, 50);
    const difference = all.now.sum / 100 - all.before.sum / 200;
    const change = changeOf(all, having)!;
    expect(change.share).toMatchObject({ now: 0.5, before: 0.02 });
    expect(change.share.low).toBeGreaterThan(0.35);
    expect(change.effect).toBeCloseTo(-0.7, 1);
    expect(change.contribution).toMatchObject({ isSeparable: true });
    expect(change.contribution!.value / difference).toBeCloseTo(1, 1);
    expect(change.contribution!.high).toBeLessThan(0);
  });

  test('a property that is as common as before explains nothing', () => {
    const { all, having } = planted(40, 21);
    const { contribution } = changeOf(all, having)!;
    expect(contribution!.low).toBeLessThan(0);
    expect(contribution!.high).toBeGreaterThan(0);
    expect(contribution!.p).toBeGreaterThan(0.05);
  });

  test('a property of every rollout of the step is not separable, and counts half', () => {
    const { all } = planted(4, 50);
    const version = changeOf(all, { now: all.now, before: sums([]) })!;
    expect(version.contribution).toMatchObject({ isSeparable: false });
    const difference = all.now.sum / 100 - all.before.sum / 200;
    expect(version.contribution!.value).toBeCloseTo(difference, 12);
    const tool = changeOf(all, planted(4, 50).having)!;
    const ranked = rankCauses(
      [
        { name: 'version', ...version },
        { name: 'tool', ...tool },
      ],
      difference,
    );
    expect(ranked.map(({ cause, isLikely }) => [cause.name, isLikely])).toEqual([
      ['tool', true],
      ['version', true],
    ]);
    const weak = changeOf(all, planted(4, 12).having)!;
    expect(
      rankCauses(
        [
          { name: 'version', ...version },
          { name: 'weak', ...weak },
        ],
        difference,
      )[0]!.cause.name,
    ).toBe('version');
  });

  test('causes of noise are rarely likely', () => {
    const random = uniform(3);
    let likely = 0;
    const rounds = 300;
    for (let round = 0; round < rounds; round += 1) {
      const [before, now] = [300, 60].map((count, side) => Array.from({ length: count }, () => (random() < 0.6 - 0.3 * side ? 1 : 0)));
      const all = { now: sums(now!), before: sums(before!) };
      const causes = Array.from({ length: 10 }, () => {
        const pick = (values: readonly number[]) => sums(values.filter(() => random() < 0.3));
        return changeOf(all, { now: pick(now!), before: pick(before!) })!;
      });
      if (rankCauses(causes, -0.3).some(({ isLikely }) => isLikely)) likely += 1;
    }
    expect(likely / rounds).toBeLessThan(0.05 + 3 * Math.sqrt((0.05 * 0.95) / rounds));
  });

  test('harder tasks explain the change, tasks without earlier rollouts do not', () => {
    const history = (difference: number, count = 40) => ({
      count,
      sum: difference * count,
      sumOfSquares: count * (difference ** 2 + 0.01),
    });
    const hard = { now: 40, before: 20, history: history(-0.4) };
    const easy = { now: 10, before: 180, history: history(0.1) };
    const mix = mixOf([hard, easy, { now: 10, before: 0, history: sums([]) }])!;
    expect(mix).toMatchObject({ unseen: 1, isSeparable: true });
    expect(mix.value).toBeCloseTo((40 / 60 - 20 / 200) * -0.4 + (10 / 60 - 180 / 200) * 0.1, 12);
    expect(mix.high).toBeLessThan(0);
    expect(mixOf([{ ...hard, now: 0 }])).toBeNull();
    expect(mixOf([{ now: 4, before: 20, history: history(-0.4) }])).toMatchObject({ value: 0, p: 1, changed: 0 });
  });

  test('nothing is estimated without rewards, or without rollouts on both sides', () => {
    const none = sums([]);
    expect(changeOf({ now: none, before: sums([1, 0]) }, { now: none, before: sums([1]) })).toBeNull();
    expect(changeOf({ now: sums([1]), before: sums([1, 0]) }, { now: none, before: none })).toMatchObject({
      effect: null,
      contribution: null,
    });
  });

  test('intervals of differences of shares stay inside of −1 and 1', () => {
    expect(newcombeInterval({ count: 0, of: 400 }, { count: 29, of: 80 }).low).toBeGreaterThan(0.25);
    expect(newcombeInterval({ count: 10, of: 10 }, { count: 0, of: 10 }).low).toBeGreaterThanOrEqual(-1);
  });
});
