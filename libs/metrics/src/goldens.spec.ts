import { expect, test } from 'vitest';
import { type Lens, metric, type RolloutFacts } from './index.ts';

/**
 * Figures that the trainers' own functions gave for these rewards, for those whose packages are on no registry: slime
 * `compute_pass_rate` (slime/observability/metric_utils.py:14 @ 624b824), prime-rl `compute_pass_metrics`
 * (src/prime_rl/orchestrator/utils.py:181 @ 559b447), rLLM `_pass_at_k` (rllm/eval/results.py:27 @ 9beb6e0f). The others run in
 * tests/conformance/metrics.spec.ts.
 */
const three = [1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0];
const of = (n: number, c: number) => Array.from({ length: n }, (_, i) => (i < c ? 1 : 0));

function rowsOf(groups: number[][]): RolloutFacts[] {
  return groups.flatMap((rewards, group) =>
    rewards.map((reward, sample) => ({
      id: `${group}-${sample}`,
      group: String(group),
      reward,
      rewardPositive: reward,
      lastReward: reward,
      rewardSteps: 1,
      stop: 'finished' as const,
      turns: 1,
      assistantTurns: 1,
      toolTurns: 0,
      calls: 0,
      callErrors: 0,
      tokensOut: null,
      tokensTool: null,
      failure: null,
      environment: null,
      phase: null,
    })),
  );
}

const rllm = [
  0.39583333333333337, 0.5303030303030303, 0.6545454545454545, 0.6863636363636364, 0.7102272727272727, 0.7272727272727273,
  0.7386363636363636, 0.7454545454545455, 0.7488636363636364, 0.75, 0.75, 0.75,
];

test.each<[Lens, number[][], Record<string, number>]>([
  [
    'slime',
    [three, of(12, 7)],
    { 'pass@1': 0.41666666666666674, 'pass@2': 0.6515151515151514, 'pass@4': 0.8676767676767676, 'pass@8': 0.990909090909091 },
  ],
  [
    'prime-rl',
    [three],
    {
      'effective/pass@1': 0.25,
      'effective/pass@2': 0.4545454545454546,
      'effective/pass@4': 0.7454545454545455,
      'effective/pass@8': 0.9818181818181818,
      'effective/pass^1': 0.25,
      'effective/pass^2': 0.045454545454545456,
      'effective/pass^4': 0,
      'effective/pass^8': 0,
    },
  ],
  ['rllm', [of(8, 8), of(2, 0), of(3, 1), of(12, 3)], Object.fromEntries(rllm.map((value, i) => [`pass@${i + 1}`, value]))],
])('%s gives what the trainer’s own function gave', (lens, groups, expected) => {
  const rows = rowsOf(groups);
  const keys = Object.keys(expected);
  const family = metric(lens, lens === 'prime-rl' ? 'effective/pass@{k}' : 'pass@{k}')!;
  expect(family.keysFor(rows)).toEqual(keys.filter((key) => key.includes('@')));
  for (const key of keys) {
    const answer = metric(lens, key)!.compute(rows);
    expect(answer, `${lens} ${key}`).toMatchObject({ value: expect.closeTo(expected[key]!, 12) });
  }
});
