import { studentInterval } from '@palestra/metrics';
import { expect, test } from 'vitest';
import type { EpisodeResult } from './episode.ts';
import { metricOf, resultsOf } from './results.ts';

const episode = (task: number, sample: number, reward: number | null, more: Partial<EpisodeResult> = {}): EpisodeResult => ({
  task,
  sample,
  reward,
  stop: 'finished',
  failure: null,
  error: null,
  turns: 2,
  calls: 1,
  refused: 0,
  tokens: { prompt: 1_000, output: 100 },
  ...more,
});
const broken = { stop: 'infra_error', failure: 'infrastructure', tokens: null } as const;
const options = { samples: 2, levelOf: () => null, prices: null };

test('figures are over tasks, without the episodes that failed', () => {
  const episodes = [
    episode(0, 0, 1),
    episode(0, 1, 1),
    episode(1, 0, 0),
    episode(1, 1, 1, { refused: 2 }),
    episode(2, 0, 0),
    episode(2, 1, null, broken),
    episode(3, 0, null, { ...broken, stop: 'env_error', failure: 'environment' }),
  ];
  const results = resultsOf(episodes, { ...options, prices: { input: 3, output: 15 } });
  // The means of the tasks are 1, 0.5 and 0: an episode that failed is neither a 0 nor a task.
  expect(results.reward_mean).toEqual({ value: 0.5, ...studentInterval([0, 0.5, 1]) });
  expect(results).toMatchObject({
    tasks: 3,
    episodes: 7,
    scored: 5,
    success: { value: 0.6 },
    failures: { environment: 1, infrastructure: 1 },
    stops: { finished: 5, infra_error: 1, env_error: 1 },
    refused_calls: 2,
    tokens: { prompt: 5_000, output: 500 },
    levels: [],
  });
  expect(results.cost).toBeCloseTo((5_000 * 3 + 500 * 15) / 1e6, 12);
  // pass@2 needs two scored episodes: tasks 0 and 1.
  expect(results.pass.map(({ k, value }) => [k, value])).toEqual([
    [1, 0.5],
    [2, 1],
  ]);
  expect(metricOf(results, 'pass_at_2')?.value).toBe(1);
  expect(metricOf(results, 'pass_at_3')).toBeUndefined();
  expect(metricOf(results, 'failed')?.value).toBeCloseTo(2 / 7, 12);
});

test('tasks with levels have rows, by one rule of success', () => {
  const levelOf = (task: number) => ['2', '10', '2'][task] ?? null;
  // Beyond 1, so that a reward above 0 is a success, also of the level whose rewards are from 0 to 1.
  const { levels } = resultsOf([episode(0, 0, 5), episode(1, 0, 0.5), episode(2, 0, 0)], { ...options, levelOf, samples: 1 });
  expect(levels.map(({ level, tasks, success, reward_mean: mean }) => [level, tasks, success.value, mean.value])).toEqual([
    ['2', 2, 0.5, 2.5],
    ['10', 1, 1, 0.5],
  ]);
});

test('without a scored episode there are no figures', () => {
  const results = resultsOf([episode(0, 0, null, broken)], options);
  expect(results).toMatchObject({ scored: 0, tasks: 0, tokens: null, cost: null });
  for (const metric of ['reward_mean', 'success', 'pass_at_1'] as const)
    expect(metricOf(results, metric)).toMatchObject({ value: null, low: null, high: null });
});
