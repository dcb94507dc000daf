import { expect, test } from 'vitest';
import { combineSteps, parseRewardJson, parseRewardText, primaryReward, reaches, RewardError } from './rewards.ts';

test('reads reward.txt as Python reads a float', () => {
  for (const [text, reward] of Object.entries({ '1': 1, ' 0.5\n': 0.5, '-1e-2': -0.01, '.5': 0.5, '5.': 5, '1_000': 1_000 }))
    expect(parseRewardText(text), text).toEqual({ reward });
  for (const text of ['', '\n', 'nan', 'inf', '1e999', '0x10', '1 2', 'very good'])
    expect(() => parseRewardText(text), text).toThrow(RewardError);
});

test('reads reward.json as an object of finite numbers', () => {
  expect(parseRewardJson('{"reward": 0.5, "passed": true, "files": 3}')).toEqual({ reward: 0.5, passed: 1, files: 3 });
  for (const text of ['', '{}', '1', '[1]', 'null', '{"reward": "1"}', '{"reward": null}', '{"reward": 1e999}', '{"reward": NaN}', '{'])
    expect(() => parseRewardJson(text), text).toThrow(RewardError);
});

test('the reward of several metrics is "reward", or the only one', () => {
  expect(primaryReward({ reward: 0, other: 1 })).toBe(0);
  expect(primaryReward({ passed: 0.25 })).toBe(0.25);
  expect(primaryReward({ one: 1, other: 1 })).toBeNull();
});

test('steps are combined by their mean or their last one, and stop below a minimum', () => {
  expect(combineSteps([{ reward: 1, extra: 1 }, { reward: 0 }], 'mean')).toEqual({ reward: 0.5, extra: 0.5 });
  expect(combineSteps([{ reward: 1 }, { reward: 0.25 }], 'final')).toEqual({ reward: 0.25 });
  expect([reaches({ reward: 0.5 }, 0.5), reaches({ reward: 0.4 }, 0.5), reaches({ other: 1 }, 0.5), reaches({}, null)]).toEqual([
    true,
    false,
    false,
    true,
  ]);
  expect(reaches({ one: 1, two: 0 }, { one: 1, two: 0.5 })).toBe(false);
});
