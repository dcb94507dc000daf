import type { RolloutRow } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { groupByTask, rewardInterval, successThreshold } from './interval.ts';

let serial = 0;
const row = (task_index: number | null, reward: number | null): RolloutRow => ({
  id: `r${serial++}`,
  rolloutName: null,
  environment: 'palestra/whodunit',
  split: 'train',
  variant: null,
  task_index,
  task: null,
  step: null,
  policy_step: null,
  group: null,
  sample: null,
  phase: 'unknown',
  reward,
  reward_reported: null,
  max_reward: reward,
  num_messages: 1,
  num_tool_calls: 0,
  num_errors: 0,
  turns: 1,
  tokens: null,
  tool_tokens: null,
  bytes: 0,
  gaps: 0,
  finished: true,
  stop: 'finished',
  failure_class: null,
  flags: [],
  provenance: {},
  verified: null,
  latency_ms: null,
  source: null,
  model: null,
  session: null,
  state: 'complete',
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
});

test('the interval is taken over group means and leaves out unscored rollouts', () => {
  // Group means 1 and 0: s = 0.7071, t(1) = 12.706, half width = 12.706 × 0.7071 / √2
  expect(rewardInterval([row(1, 1), row(1, 1), row(2, 0), row(2, null)])).toBeCloseTo(6.353, 3);
  expect(rewardInterval([row(1, 1), row(1, 0)])).toBeNull();
  expect(rewardInterval([])).toBeNull();
});

test('rollouts without a task are groups of their own', () => {
  expect(groupByTask([row(null, 1), row(null, 1), row(3, 1), row(3, 0)]).size).toBe(3);
});

test('the threshold follows the range of the rewards', () => {
  expect(successThreshold([row(1, 0.2), row(1, 1)]).solved(0.9)).toBe(false);
  expect(successThreshold([row(1, -0.2), row(1, 1)]).solved(0.9)).toBe(true);
});
