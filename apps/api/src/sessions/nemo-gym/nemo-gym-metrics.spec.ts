import { expect, test } from 'vitest';
import { aggregateMetrics } from './nemo-gym-metrics.ts';

const sample = (task: number, reward: number, mask = false) => ({ _ng_task_index: task, reward, mask_sample: mask });

test('statistics of all rewards and of each task', () => {
  const { agent_metrics, key_metrics, group_level_metrics } = aggregateMetrics({
    verify_responses: [sample(2, 0), sample(1, 1), sample(1, 0), sample(2, 0)],
  });
  const agent = { 'mean/reward': 0.25, 'max/reward': 1, 'min/reward': 0, 'median/reward': 0, 'std/reward': 0.5 };
  expect(agent_metrics).toEqual(agent);
  expect(key_metrics).toEqual({ 'mean/reward': 0.25 });
  expect(group_level_metrics).toMatchObject([
    { _ng_task_index: 1, 'mean/reward': 0.5 },
    { _ng_task_index: 2, 'mean/reward': 0 },
  ]);
});

test('masked samples are coverage, not zeros', () => {
  const coverage = {
    'coverage/measured_rollouts': 1,
    'coverage/masked_rollouts': 2,
    'coverage/measured_tasks': 1,
    'coverage/fully_masked_tasks': 1,
  };
  const { agent_metrics, key_metrics } = aggregateMetrics({
    verify_responses: [sample(1, 1), sample(1, 0, true), sample(2, 0, true)],
  });
  expect(agent_metrics).toMatchObject({ 'mean/reward': 1, ...coverage });
  expect(key_metrics).toEqual({ 'mean/reward': 1, ...coverage });
  expect(aggregateMetrics({ verify_responses: [sample(1, 0, true)] })['agent_metrics']).not.toHaveProperty('mean/reward');
});

test('nothing, and nonsense', () => {
  const empty = { group_level_metrics: [], agent_metrics: {}, key_metrics: {}, repeat_level_metrics: [] };
  for (const body of [null, {}, { verify_responses: 'x' }, { verify_responses: [1, null] }]) expect(aggregateMetrics(body)).toEqual(empty);
});
