import type { Lens } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { columnsOf, computeLens, isFigure, metric, type MetricContext, type RolloutFigures } from './index.ts';
import { truncatedRate } from './canonical.ts';

/** The vectors of docs/reference/metrics.md#test-vectors. */
const TOLERANCE = 1e-6;

function row(figures: Partial<RolloutFigures> = {}): RolloutFigures {
  const reward = figures.reward === undefined ? 0 : figures.reward;
  return {
    group: 'a',
    rewardPositive: reward === null ? null : Math.max(0, reward),
    lastReward: reward ?? 0,
    rewardSteps: reward === null ? 0 : 1,
    stop: 'finished',
    turns: 1,
    assistantTurns: 1,
    toolTurns: 0,
    calls: 0,
    callErrors: 0,
    tokensOut: null,
    tokensTool: null,
    failure: null,
    environment: 'env',
    ...figures,
    reward,
  };
}

const groups = (table: Record<string, (number | null)[]>): RolloutFigures[] =>
  Object.entries(table).flatMap(([group, rewards]) => rewards.map((reward) => row({ group, reward })));

function answer(lens: Lens, key: string, rows: RolloutFigures[], context: MetricContext = {}) {
  const found = metric(lens, key)!.compute(columnsOf(rows), context);
  if (!isFigure(found)) throw new Error(`${lens} ${key}: ${found.unavailable}`);
  return found;
}
const value = (lens: Lens, key: string, rows: RolloutFigures[], context?: MetricContext) => answer(lens, key, rows, context).value;

function expectValues(lens: Lens, rows: RolloutFigures[], expected: Record<string, number>, context?: MetricContext): void {
  for (const [key, wanted] of Object.entries(expected)) {
    const got = value(lens, key, rows, context);
    expect(got, `${lens} ${key}`).not.toBeNull();
    expect(Math.abs(got! - wanted), `${lens} ${key} = ${got}, not ${wanted}`).toBeLessThanOrEqual(TOLERANCE);
  }
}

const passing = (n: number, c: number) => groups({ a: Array.from({ length: n }, (_, i) => (i < c ? 1 : 0)) });

describe('test vectors', () => {
  const fromSteps = (group: string, steps: number[]) =>
    row({
      group,
      reward: steps.reduce((total, step) => total + step, 0),
      rewardPositive: steps.reduce((total, step) => total + Math.max(0, step), 0),
      lastReward: steps.at(-1)!,
      rewardSteps: steps.length,
    });
  test.each([
    ['1', [[1], [2]], 1.5, 1, 1.5],
    [
      '2',
      [
        [1, 0],
        [0, 1],
      ],
      1,
      0.5,
      1,
    ],
    ['3', [[-1], [2]], 0.5, 0.5, 1],
    [
      '4',
      [
        [1, -1],
        [-0.5, 0.5],
      ],
      0,
      0.5,
      0.75,
    ],
  ])('%s: SkyRL raw, pass, positive', (_name, [first, second], raw, pass, positive) => {
    const rows = [fromSteps('a', first!), fromSteps('b', second!)];
    expectValues('skyrl', rows, { 'reward/avg_raw_reward': raw, 'reward/avg_pass_at_1': pass, 'reward/mean_positive_reward': positive });
  });

  test('5: n = 4, c = 1', () => expectValues('canonical', passing(4, 1), { 'pass@1': 0.25, 'pass@2': 0.5, 'pass@4': 1, 'pass^2': 0 }));
  test('6: n = 8, c = 3', () =>
    expectValues('canonical', passing(8, 3), { 'pass@2': 0.642857, 'pass@4': 0.928571, 'pass@8': 1, 'pass^2': 0.107143 }));
  test('7: n = 64, c = 5', () =>
    expectValues('canonical', passing(64, 5), {
      'pass@2': 0.15129,
      'pass@4': 0.28369,
      'pass@8': 0.499008,
      'pass@16': 0.775421,
      'pass@32': 0.973588,
    }));

  const eight = groups({ A: [1, 1, 1, 1], B: [0, 0, 0, 0], C: [1, 0, 0, 0], D: [0.5, 0.5, 0.5, 0.5] });
  test('8: canonical', () => {
    expectValues('canonical', eight, {
      reward_mean: 0.4375,
      reward_std: 0.442531,
      'pass@1': 0.3125,
      'pass@2': 0.375,
      'pass@4': 0.5,
      zero_variance: 0.75,
    });
    expectValues('canonical', eight, { reward_std: 0.428478 }, { ddof: 0 });
    expectValues('canonical', eight, { zero_variance_all_fail: 0.25, zero_variance_all_pass: 0.25, zero_variance_equal_other: 0.25 });
  });
  test('8: trainers', () => {
    expectValues('skyrl', eight, { 'reward/avg_pass_at_4': 0.75, 'reward/num_zero_variance_filtered': 3 });
    expectValues('slime', eight, {
      'pass@1': 0.3125,
      'pass@2': 0.375,
      'pass@4': 0.5,
      'zero_std/count_1.0': 1,
      'zero_std/count_0.0': 1,
      'zero_std/count_0.5': 1,
    });
    expectValues('trl', eight, { frac_reward_zero_std: 0.75, reward: 0.4375, reward_std: 0.442531 });
    expectValues('tinker', eight, {
      'by_group/frac_all_good': 0.5,
      'by_group/frac_all_bad': 0.25,
      'by_group/frac_mixed': 0.25,
      'reward/total': 0.4375,
    });
    expectValues('verl', eight, { 'best@2/mean': 0.484375, 'best@4/mean': 0.545898, 'std@4': 0.108253, 'mean@4': 0.4375 });
    expectValues('prime-rl', eight, { 'all/solved_none': 0.25, 'all/solved_all': 0.25, 'all/solved_some': 0.5, 'effective/avg@4': 0.4375 });
    expect(value('prime-rl', 'effective/pass@2', eight)).toBeNull();
    expect([...computeLens('prime-rl', columnsOf(eight)).keys()].filter((key) => key.includes('pass'))).toEqual([]);
  });

  test('9: verl, exact and as NumPy draws it', () => {
    const rows = groups({ C: [1, 0, 0, 0] });
    expectValues('verl', rows, { 'best@2/mean': 0.4375, 'best@4/mean': 0.68359375 });
    expectValues('verl', rows, { 'best@2/mean/bootstrap': 0.453, 'best@4/mean/bootstrap': 0.687 });
    expectValues('canonical', rows, { 'pass@2': 0.5, 'pass@4': 1 });
  });

  test('10: uneven groups', () => {
    const rows = groups({ A: Array.from({ length: 8 }, () => 1), B: [0, 0], C: [1, 0, 0] });
    expectValues('canonical', rows, {
      reward_mean: 0.692308,
      'avg@n': 0.444444,
      'pass@1': 0.444444,
      'pass@2': 0.555556,
      'pass@3': 1,
      'pass@4': 1,
    });
    expect(['pass@1', 'pass@2', 'pass@3', 'pass@4'].map((key) => answer('canonical', key, rows).denominator)).toEqual([3, 3, 2, 1]);
    expect(answer('canonical', 'pass@3', rows).of).toBe(3);
    expectValues('rllm', rows, { 'pass@3': 0.666667 });
  });

  test('11: reward 1.0 at turn 3 of 4', () => {
    const rows = [row({ reward: 1, lastReward: 0, turns: 4 })];
    expectValues('skyrl', rows, { 'reward/avg_pass_at_1': 0, 'reward/avg_raw_reward': 1 });
    expectValues('canonical', rows, { 'pass@1': 1 });
  });

  test('12: denominators', () => {
    const rows = [
      row({ reward: 1 }),
      row({ reward: null }),
      row({ reward: 0 }),
      row({ reward: 1, stop: 'env_error', failure: 'environment' }),
    ];
    expect(answer('canonical', 'reward_mean', rows)).toEqual({ value: 0.5, denominator: 2, of: 4 });
    expect(answer('canonical', 'reward_mean', rows, { denominator: 'scored' })).toEqual({ value: 2 / 3, denominator: 3, of: 4 });
    expect(answer('canonical', 'reward_mean', rows, { denominator: 'all' })).toEqual({
      value: 0.5,
      denominator: 4,
      of: 4,
      note: 'null as 0 (1 of 4)',
    });
    expectValues('trl', rows, { reward: 0.666667 });
    expectValues('skyrl', rows, { 'reward/avg_raw_reward': 0.5 });
  });

  test('13: turns', () => {
    const long = [row({ turns: 3, assistantTurns: 3, toolTurns: 2 })];
    expectValues('canonical', long, { turns: 3 });
    expectValues('verl', long, { 'num_turns/mean': 6 });
    expectValues('canonical', [row()], { turns: 1 });
    expectValues('verl', [row()], { 'num_turns/mean': 2 });
  });

  test('14: [-1, 1]', () => {
    const rows = groups({ a: [-1, 1] });
    expectValues('prime-rl', rows, { 'all/solved_none': 1 });
    expectValues('canonical', rows, { success: 0.5 });
  });

  test('15: a group of one', () => {
    const rows = groups({ a: [1] });
    expectValues('slime', rows, { 'zero_std/count_1.0': 1 });
    expect(answer('canonical', 'zero_variance', rows)).toEqual({ value: null, denominator: 0, of: 1 });
    expectValues('skyrl', rows, { 'reward/num_zero_variance_filtered': 0 });
  });

  test('16: almost equal', () => {
    const rows = groups({ a: [0.5, 0.5 + 5e-7] });
    expectValues('canonical', rows, { zero_variance: 1 });
    expectValues('skyrl', rows, { 'reward/num_zero_variance_filtered': 1 });
    expectValues('slime', rows, { 'zero_std/count_0.5': 0 });
    expectValues('trl', rows, { frac_reward_zero_std: 0 });
    expectValues('verl', rows, { 'filter_groups/zero_std': 0 });
  });

  test('17: percentiles', () => expectValues('canonical', groups({ a: [0, 0, 0, 1] }), { reward_p75: 0.25, reward_p90: 0.7 }));
  test('18: Infinity is not scored', () =>
    expect(answer('canonical', 'reward_mean', groups({ a: [1, Number.POSITIVE_INFINITY] }))).toEqual({ value: 1, denominator: 1, of: 2 }));

  test('the truncation rate leaves out unknown stops', () => {
    const rows = [row({ stop: 'max_turns' }), row({ stop: null }), row({ stop: 'unknown' }), row()];
    expect(truncatedRate(columnsOf(rows))).toEqual({ value: 0.5, denominator: 2, of: 4 });
  });
});
