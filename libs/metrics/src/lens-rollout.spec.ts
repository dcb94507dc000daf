import { type Lens, LENSES } from '@palestra/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { columnsOf, computeLens, isFailed, isFigure, lensRolloutRule, type RolloutFigures, rolloutOfLens } from './index.ts';
import { inferSuccessRule } from './success.ts';

const RULE = { threshold: 1, strict: false };
const row = (more: Partial<RolloutFigures> = {}): RolloutFigures => ({
  group: 'g',
  reward: 1,
  rewardPositive: 1,
  lastReward: 1,
  rewardSteps: 1,
  stop: 'finished',
  turns: 2,
  assistantTurns: 2,
  toolTurns: 1,
  calls: 1,
  callErrors: 0,
  tokensOut: null,
  tokensTool: null,
  failure: null,
  environment: 'x',
  ...more,
});
const of = (lens: Lens, more: Partial<RolloutFigures> = {}) => {
  const { reward, success, counted } = rolloutOfLens(lens, row(more), RULE);
  return [reward, success, counted];
};

describe('one rollout as a trainer counts it', () => {
  test.each<[Lens, unknown[]]>([
    ['canonical', [null, null, false]],
    ['skyrl', [0, false, true]],
    ['verl', [0, null, true]],
    ['trl', [null, null, false]],
    ['prime-rl', [0, false, true]],
    ['slime', [0, false, true]],
    ['tinker', [0, null, true]],
    ['rllm', [null, false, true]],
  ])('%s: an unscored one', (lens, expected) => {
    expect(of(lens, { reward: null, lastReward: 0 })).toEqual(expected);
    expect(of(lens, { reward: Number.NaN, lastReward: 0 })).toEqual(expected);
  });

  test('SkyRL counts the reward of the last step, not the total', () => {
    expect(of('skyrl', { reward: -3, lastReward: 0.1 })).toEqual([-3, true, true]);
    expect(of('skyrl', { reward: 5, lastReward: 0 })).toEqual([5, false, true]);
    expect(of('skyrl', { reward: 5, lastReward: null })).toEqual([5, null, true]);
  });

  test('prime-rl counts neither errors nor cancelled ones, and solves at exactly 1', () => {
    expect(of('prime-rl', { failure: 'environment' })).toEqual([1, null, false]);
    expect(of('prime-rl', { stop: 'cancelled' })).toEqual([1, null, false]);
    expect(of('prime-rl', { stop: 'max_turns' })).toEqual([1, true, true]);
    expect(of('prime-rl', { reward: 2 })).toEqual([2, false, true]);
  });

  test('verl leaves out rollouts without a turn of the model; unknown turns give unknown', () => {
    expect(of('verl', { assistantTurns: 0 })).toEqual([1, null, false]);
    expect(of('verl', { assistantTurns: null })).toEqual([1, null, null]);
  });

  test('slime and tinker use the trained reward where it is known', () => {
    expect(of('slime', { reward: 0.4, trainedReward: 1 })).toEqual([1, true, true]);
    expect(of('slime', { reward: 0.4, trainedReward: null })).toEqual([0, false, true]);
    expect(of('slime', { reward: 0.4 })).toEqual([0.4, false, true]);
    expect(of('tinker', { reward: 0.4, trainedReward: 0.5 })).toEqual([0.5, null, true]);
  });

  test('every lens has its own rule', () => {
    expect(new Set(LENSES.map(lensRolloutRule)).size).toBe(LENSES.length);
  });
});

describe('the mean over counted rollouts', () => {
  const figures = fc.record({
    reward: fc.option(fc.integer({ min: -8, max: 8 }).map((value) => value / 4)),
    lastReward: fc.option(fc.constantFrom(0, 1)),
    assistantTurns: fc.nat(2),
    stop: fc.constantFrom('finished' as const, 'max_turns' as const, 'env_error' as const, 'cancelled' as const),
    failure: fc.constantFrom('infrastructure' as const, null),
  });

  test.each<[Lens, string, 'reward' | 'success']>([
    ['canonical', 'reward_mean', 'reward'],
    ['canonical', 'success', 'success'],
    ['skyrl', 'reward/avg_raw_reward', 'reward'],
    ['verl', 'critic/score/mean', 'reward'],
    ['trl', 'reward', 'reward'],
    ['prime-rl', 'effective/reward/mean', 'reward'],
    ['slime', 'raw_reward/mean', 'reward'],
    ['tinker', 'reward/total', 'reward'],
    ['rllm', 'score', 'success'],
  ])('%s: is its %s', (lens, key, what) => {
    fc.assert(
      fc.property(fc.array(figures, { maxLength: 20 }), (drawn) => {
        const rows = drawn.map((more) => row(more));
        const answer = computeLens(lens, columnsOf(rows)).get(key);
        if (answer === undefined || !isFigure(answer)) throw new Error(`${lens} has no figure ${key}`);
        const rule = inferSuccessRule(rows.map((each) => (isFailed(each) ? null : each.reward)));
        const counted = rows.map((each) => rolloutOfLens(lens, each, rule)).filter((each) => each.counted);
        const mean = counted.length === 0 ? null : counted.reduce((sum, each) => sum + Number(each[what]), 0) / counted.length;
        if (mean === null) expect(answer.value).toBeNull();
        else expect(answer.value).toBeCloseTo(mean, 9);
        expect(answer.denominator).toBe(counted.length);
      }),
    );
  });
});
