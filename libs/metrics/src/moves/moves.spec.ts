import { describe, expect, test } from 'vitest';
import type { SampleSums } from '../intervals.ts';
import { uniform } from '../random.ts';
import { changeOf, mixOf, newcombeInterval, rankCauses } from './causes.ts';
import { type GroupSums, momentsOf } from './moments.ts';
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

/** A rollout with a reward, and whether it has the property. */
type Member = readonly [reward: number, has: boolean];
const sumsOf = (group: readonly Member[]): GroupSums => {
  const having = group.filter(([, has]) => has);
  const sum = (members: readonly Member[]) => members.reduce((total, [reward]) => total + reward, 0);
  return { n: group.length, s: sum(group), n1: having.length, s1: sum(having) };
};
/** Of one environment. */
const sideOf = (groups: readonly (readonly Member[])[]) => [momentsOf(groups.map(sumsOf))];
/** Each rollout is its own group. */
const alone = (members: readonly Member[]) => sideOf(members.map((member) => [member]));
const meanOf = (members: readonly Member[]) => members.reduce((total, [reward]) => total + reward, 0) / members.length;

describe('what explains a move', () => {
  /** 200 rollouts before, 100 at the step. `bad` have the property and earn nothing; the others earn 1 in `good` of 10 cases. */
  const planted = (badBefore: number, badNow: number, good = 7) => {
    const members = (count: number, bad: number) =>
      Array.from({ length: count }, (_, at): Member => (at < bad ? [0, true] : [at % 10 < good ? 1 : 0, false]));
    const [before, now] = [members(200, badBefore), members(100, badNow)];
    return { before, now, difference: meanOf(now) - meanOf(before), change: changeOf({ now: alone(now), before: alone(before) })! };
  };
  const everyNow = ({ before, now }: ReturnType<typeof planted>) =>
    changeOf({ now: alone(now.map(([reward]) => [reward, true])), before: alone(before.map(([reward]) => [reward, false])) })!;

  test('a property that became common among failing rollouts explains the change', () => {
    const { change, difference } = planted(4, 50);
    expect(change.share).toMatchObject({ now: 0.5, before: 0.02 });
    expect(change.share.low).toBeGreaterThan(0.35);
    expect(change.effect).toBeCloseTo(-0.7, 1);
    expect(change.contribution).toMatchObject({ isSeparable: true });
    expect(change.contribution!.value / difference).toBeCloseTo(1, 1);
    expect(change.contribution!.high).toBeLessThan(0);
  });

  test('a property that is as common as before explains nothing', () => {
    const { contribution } = planted(40, 21).change;
    expect(contribution!.low).toBeLessThan(0);
    expect(contribution!.high).toBeGreaterThan(0);
    expect(contribution!.p).toBeGreaterThan(0.05);
  });

  test('a property of every rollout of the step is not separable, and counts half', () => {
    const data = planted(4, 50);
    const { difference } = data;
    const version = everyNow(data);
    expect(version.contribution).toMatchObject({ isSeparable: false });
    expect(version.contribution!.value).toBeCloseTo(difference, 12);
    const ranked = rankCauses(
      [
        { name: 'version', ...version },
        { name: 'tool', ...data.change },
      ],
      difference,
    );
    expect(ranked.map(({ cause, isLikely }) => [cause.name, isLikely])).toEqual([
      ['tool', true],
      ['version', true],
    ]);
    const weak = planted(4, 12).change;
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

  test('rollouts of a group count as less than as many independent ones', () => {
    const random = uniform(9);
    // Either all of a group have the property or none.
    const groups = (count: number, share: number) =>
      Array.from({ length: count }, () => {
        const has = random() < share;
        return Array.from({ length: 8 }, (): Member => [random() < (has ? 0.1 : 0.8) ? 1 : 0, has]);
      });
    const [now, before] = [groups(12, 0.6), groups(60, 0.1)];
    const clustered = changeOf({ now: sideOf(now), before: sideOf(before) })!;
    const independent = changeOf({ now: alone(now.flat()), before: alone(before.flat()) })!;
    const width = ({ low, high }: { low: number; high: number }) => high - low;
    expect(clustered.share.difference).toBe(independent.share.difference);
    expect(clustered.effect).toBeCloseTo(independent.effect!, 12);
    expect(width(clustered.share)).toBeGreaterThan(2 * width(independent.share));
    expect(width(clustered.contribution!)).toBeGreaterThan(1.3 * width(independent.contribution!));
  });

  test('how many rollouts are of which environment is no chance: a tool that breaks in one of two is a likely cause', () => {
    // As in the demo: two groups of each environment at a step, whose tool fails in every rollout of one of them.
    const group = (solved: number, has = false) => Array.from({ length: 4 }, (_, at): Member => [at < solved ? 1 : 0, has]);
    const good = (groups: number) => Array.from({ length: groups }, (_, at) => group(at % 2 === 0 ? 2 : 4));
    const sides = {
      now: [...sideOf(good(2)), ...sideOf([group(0, true), group(0, true)])],
      before: [...sideOf(good(10)), ...sideOf(good(10))],
    };
    const change = changeOf(sides)!;
    const [ranked] = rankCauses([change], 3 / 8 - 3 / 4);
    expect(ranked!.isLikely).toBe(true);
    const mixed = changeOf({ now: sideOf([...good(2), group(0, true), group(0, true)]), before: sideOf(good(20)) })!;
    expect(mixed.effect).toBe(change.effect);
    expect(mixed.contribution!.p).toBeGreaterThan(change.contribution!.p);
  });

  test.each([
    [4, 20],
    [16, 80],
  ])('causes of noise are rarely likely, with %i groups at the step and %i before', (atStep, earlier) => {
    const random = uniform(3);
    const [rounds, properties] = [300, 6];
    let [likely, single] = [0, 0];
    for (let round = 0; round < rounds; round += 1) {
      // Levels of groups differ, each property keeps to some groups and costs reward, and its share is the same on both sides.
      const groups = (count: number, drop: number) =>
        Array.from({ length: count }, () => {
          const level = random() - drop;
          const shares = Array.from({ length: properties }, () => (random() < 0.3 ? 0.9 : 0.05));
          return Array.from({ length: 4 }, () => {
            const has = shares.map((share) => random() < share);
            return { reward: (random() < level ? 1 : 0) - 0.8 * has.filter(Boolean).length, has };
          });
        });
      const [now, before] = [groups(atStep, 0.3), groups(earlier, 0)];
      const mean = (side: typeof now) => meanOf(side.flat().map(({ reward }): Member => [reward, false]));
      const changes = Array.from({ length: properties }, (_, property) => {
        const members = (side: typeof now) => side.map((group) => group.map(({ reward, has }): Member => [reward, has[property]!]));
        return changeOf({ now: sideOf(members(now)), before: sideOf(members(before)) })!;
      });
      if (rankCauses(changes, mean(now) - mean(before)).some(({ isLikely }) => isLikely)) likely += 1;
      if (changes[0]!.contribution!.p < 0.05) single += 1;
    }
    const most = 0.05 + 3 * Math.sqrt((0.05 * 0.95) / rounds);
    expect(likely / rounds).toBeLessThan(most);
    expect(single / rounds).toBeLessThan(most);
  });

  test('harder tasks explain the change, tasks without earlier rollouts do not', () => {
    /** Of ten visits, whose means differ by `spread`. */
    const history = (difference: number, spread = 0) => ({
      count: 40,
      sum: difference * 40,
      sumOfSquares: 40 * (difference ** 2 + 0.01 + spread ** 2),
      visits: 10,
      visitSquares: 40 * (difference ** 2 + spread ** 2),
    });
    const none = { ...sums([]), visits: 0, visitSquares: 0 };
    const hard = { now: 40, before: 20, history: history(-0.4) };
    const easy = { now: 10, before: 180, history: history(0.1) };
    const mix = mixOf([hard, easy, { now: 10, before: 0, history: none }])!;
    expect(mix).toMatchObject({ unseen: 1, isSeparable: true });
    expect(mix.value).toBeCloseTo((40 / 60 - 20 / 200) * -0.4 + (10 / 60 - 180 / 200) * 0.1, 12);
    expect(mix.high).toBeLessThan(0);
    // Visits that differ say less than as many independent rollouts.
    const uncertain = mixOf([
      { ...hard, history: history(-0.4, 0.3) },
      { ...easy, history: history(0.1, 0.3) },
    ])!;
    expect(uncertain.high - uncertain.low).toBeGreaterThan(3 * (mix.high - mix.low));
    expect(mixOf([{ ...hard, now: 0 }])).toBeNull();
    expect(mixOf([{ now: 4, before: 20, history: history(-0.4) }])).toMatchObject({ value: 0, p: 1, changed: 0 });
    // Each task was played once: how much its reward varies is not known.
    const once = (sum: number) => ({ count: 1, sum, sumOfSquares: sum ** 2, visits: 1, visitSquares: sum ** 2 });
    expect(
      mixOf([
        { ...hard, history: once(-0.4) },
        { ...easy, history: once(0.1) },
      ]),
    ).toBeNull();
  });

  test('nothing is estimated without rewards, without rollouts on both sides, or from one group', () => {
    const some = alone([
      [1, false],
      [0, true],
    ]);
    expect(changeOf({ now: alone([]), before: some })).toBeNull();
    const without = alone([[1, false]]);
    expect(changeOf({ now: without, before: without })).toMatchObject({ effect: null, contribution: null });
    const one = sideOf([
      [
        [1, false],
        [0, true],
      ],
    ]);
    expect(changeOf({ now: one, before: some })).toMatchObject({ effect: -1, contribution: null });
  });

  test('estimates of extreme and of equal rewards stay finite', () => {
    for (const [low, high] of [
      [-1e100, 1e100],
      [0.1, 0.1],
      [0, 1e-200],
    ] as const) {
      const side = sideOf([
        [
          [low, true],
          [high, false],
        ],
        [
          [high, true],
          [high, false],
        ],
      ]);
      const { share, effect, contribution } = changeOf({ now: side, before: side })!;
      for (const value of [share.low, share.high, effect, contribution!.value, contribution!.low, contribution!.high, contribution!.p])
        expect(Number.isFinite(value)).toBe(true);
    }
  });

  test('intervals of differences of shares stay inside of −1 and 1', () => {
    expect(newcombeInterval({ share: 0, of: 400 }, { share: 29 / 80, of: 80 }).low).toBeGreaterThan(0.25);
    expect(newcombeInterval({ share: 1, of: 10 }, { share: 0, of: 10 }).low).toBeGreaterThanOrEqual(-1);
  });
});
