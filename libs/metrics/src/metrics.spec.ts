import { LENSES } from '@palestra/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  advantages,
  avgInterval,
  columnsOf,
  computeLens,
  groupStats,
  histogram,
  histogramEdges,
  isFigure,
  listMetrics,
  mergeHistograms,
  metric,
  passAtK,
  passAtKOfGroup,
  passAtKInterval,
  resolveMetricName,
  rewardMean,
  type RolloutFigures,
  stdFromStats,
} from './index.ts';
import { bootstrapInterval } from './intervals.ts';
import { passHatK as passHatKOfGroup } from './pass.ts';
import { std } from './summary.ts';

const stops = ['finished', 'max_turns', 'env_error', 'cancelled', 'parse_error', 'unknown', null] as const;
/** Rewards in quarters: their sums are exact, so parts and wholes agree to the bit. */
const quarter = fc.integer({ min: -20, max: 20 }).map((value) => value / 4);
const rollout: fc.Arbitrary<RolloutFigures> = fc.record({
  group: fc.constantFrom('a', 'b', '__proto__', null),
  reward: fc.option(fc.oneof(quarter, fc.constantFrom(0, 1))),
  rewardPositive: fc.option(quarter),
  lastReward: fc.option(quarter),
  rewardSteps: fc.nat(3),
  stop: fc.constantFrom(...stops),
  turns: fc.option(fc.nat(9)),
  assistantTurns: fc.option(fc.nat(9)),
  toolTurns: fc.option(fc.nat(9)),
  calls: fc.nat(9),
  callErrors: fc.nat(2),
  tokensOut: fc.option(fc.nat(900)),
  tokensTool: fc.option(fc.nat(900)),
  failure: fc.constantFrom('environment' as const, null),
  environment: fc.constantFrom('x', 'org/y', null),
});
const rollouts = fc.array(rollout, { maxLength: 24 });
const counts = fc.integer({ min: 1, max: 300 }).chain((n) => fc.tuple(fc.constant(n), fc.nat(n)));

describe('properties', () => {
  test('pass@k is monotone in k; pass^k <= pass@1 <= pass@k; both lie in [0, 1]', () => {
    fc.assert(
      fc.property(counts, ([n, c]) => {
        const wrong = Array.from({ length: n - 1 }, (_, before) => before + 1).filter((k) => {
          const [here, next, all] = [passAtKOfGroup(n, c, k)!, passAtKOfGroup(n, c, k + 1)!, passHatKOfGroup(n, c, k)!];
          const isOrdered = next >= here - 1e-12 && all <= c / n + 1e-12 && here >= c / n - 1e-12;
          return !(isOrdered && Math.min(here, all) >= 0 && Math.max(here, all) <= 1);
        });
        expect(wrong).toEqual([]);
      }),
    );
  });

  test('the order of rollouts changes no canonical figure', () => {
    fc.assert(
      fc.property(
        rollouts.chain((rows) => fc.tuple(fc.constant(rows), fc.shuffledSubarray(rows, { minLength: rows.length }))),
        ([rows, shuffled]) => {
          const [before, after] = [computeLens('canonical', columnsOf(rows)), computeLens('canonical', columnsOf(shuffled))];
          for (const [key, answer] of before) expect([key, after.get(key)]).toEqual([key, answer]);
        },
      ),
    );
  });

  test('every figure of every lens is finite or null, and its denominator is at most what was there', () => {
    fc.assert(
      fc.property(rollouts, fc.constantFrom(...LENSES), (rows, lens) => {
        for (const [key, answer] of computeLens(lens, columnsOf(rows))) {
          if (!isFigure(answer)) continue;
          expect(answer.value === null || Number.isFinite(answer.value), key).toBe(true);
          expect(answer.denominator, key).toBeLessThanOrEqual(answer.of);
        }
      }),
    );
  });

  test('an unscored rollout changes no canonical mean', () => {
    fc.assert(
      fc.property(rollouts, rollout, (rows, extra) => {
        expect(rewardMean(columnsOf([...rows, { ...extra, reward: null }])).value).toBe(rewardMean(columnsOf(rows)).value);
      }),
    );
  });

  test('merged histograms equal the histogram of all rewards', () => {
    const rewards = fc.array(fc.oneof(fc.double({ min: -1e6, max: 1e6, noNaN: true }), quarter), { maxLength: 40 });
    fc.assert(
      fc.property(rewards, rewards, (left, right) => {
        const whole = histogram([...left, ...right]);
        expect(mergeHistograms(histogram(left), histogram(right))).toEqual(whole);
        expect(whole.counts.reduce((total, count) => total + count, 0)).toBe(left.length + right.length);
      }),
    );
  });

  test('a deviation from sums equals the deviation of the values', () => {
    fc.assert(
      fc.property(fc.array(quarter, { minLength: 2, maxLength: 30 }), (rewards) => {
        const stats = groupStats(columnsOf(rewards.map((reward) => ({ ...base, reward })))).get('a')!;
        expect(stdFromStats(stats, 1)).toBeCloseTo(std(rewards, 1)!, 6);
      }),
    );
  });
});

const base: RolloutFigures = {
  group: 'a',
  reward: 1,
  rewardPositive: 1,
  lastReward: 1,
  rewardSteps: 1,
  stop: 'finished',
  turns: 1,
  assistantTurns: 1,
  toolTurns: 0,
  calls: 0,
  callErrors: 0,
  tokensOut: null,
  tokensTool: null,
  failure: null,
  environment: null,
};

describe('canonical', () => {
  test('pass@k of ten thousand samples neither overflows nor loses precision', () => {
    expect(passAtKOfGroup(10_000, 1, 5000)).toBeCloseTo(0.5, 12);
    expect(passHatKOfGroup(10_000, 9999, 5000)).toBeCloseTo(0.5, 9);
  });

  test('the interval of group means is Student-t', () => {
    const rows = [0, 1, 2, 3].map((reward, i) => ({ ...base, group: `${i}`, reward }));
    // t(3, .975) = 3.182446305284263 (tables); s = sqrt(5/3)
    const half = (3.182446305284263 * Math.sqrt(5 / 3)) / 2;
    expect(avgInterval(columnsOf(rows))!.low).toBeCloseTo(1.5 - half, 8);
    expect(avgInterval(columnsOf(rows))!.high).toBeCloseTo(1.5 + half, 8);
    expect(avgInterval(columnsOf(rows.slice(0, 1)))).toBeNull();
  });

  test('the bootstrap interval is the same every time, and contains the estimate', () => {
    const rows = Array.from({ length: 40 }, (_, i) => ({ ...base, group: `${i % 10}`, reward: i % 3 === 0 ? 1 : 0 }));
    const interval = passAtKInterval(columnsOf(rows), 2)!;
    expect(passAtKInterval(columnsOf(rows.toReversed()), 2)).toEqual(interval);
    const distinct = Array.from({ length: 20 }, (_, i) => Math.sqrt(i));
    expect(bootstrapInterval(distinct, 1000, 7)).not.toEqual(bootstrapInterval(distinct, 1000, 42));
    expect(interval.low).toBeLessThan(passAtK(columnsOf(rows), 2).value!);
    expect(interval.high).toBeGreaterThan(passAtK(columnsOf(rows), 2).value!);
  });

  test('advantages are centred, and divided by the deviation', () => {
    const { centred, normalised } = advantages([0, 1])[1]!;
    expect(centred).toBe(0.5);
    expect(normalised).toBeCloseTo(0.5 / (Math.SQRT1_2 + 1e-6), 12);
    expect(advantages([1])).toEqual([{ centred: 0, normalised: null }]);
    expect(advantages([null, 1])[0]).toBeNull();
  });

  test('each environment has a success rule, inferred from its rewards', () => {
    const rows = [
      { ...base, reward: 0.5 },
      { ...base, environment: 'x', reward: 2 },
      { ...base, environment: 'x', reward: 0.5 },
    ];
    expect(groupStats(columnsOf(rows)).get('a')!.c).toBe(2);
    expect(groupStats(columnsOf(rows), { success: { threshold: 0.5, strict: false } }).get('a')!.c).toBe(3);
  });

  test('histograms have 51 edges, and known bins for 0 and 1', () => {
    const unit = histogram([0, 1, 1]);
    expect(histogramEdges(unit)).toHaveLength(51);
    expect([unit.counts[0], unit.counts[49]]).toEqual([1, 2]);
    const signed = histogram([0, -3]);
    expect([signed.low, signed.high, signed.counts[25]]).toEqual([-4, 4, 1]);
  });
});

describe('catalogue', () => {
  test('every lens lists metrics with formula and source, under unique keys that resolve', () => {
    for (const lens of LENSES) {
      const keys = listMetrics(lens).map(({ key }) => key);
      expect(new Set(keys).size).toBe(keys.length);
      for (const one of listMetrics(lens)) {
        expect(one.formula.length * one.source.length).toBeGreaterThan(0);
        expect(metric(lens, one.key)?.key).toBe(one.key);
      }
    }
  });

  test('metrics that need more than the upload say so under the trainer’s name', () => {
    for (const [lens, key] of [
      ['skyrl', 'generate/avg_num_tokens'],
      ['verl', 'critic/rewards/mean'],
      ['trl', 'completions/clipped_ratio'],
      ['slime', 'repetition_frac'],
    ] as const) {
      expect(metric(lens, key)!.compute(columnsOf([base]))).toEqual({ unavailable: 'not in the upload' });
    }
    expect(metric('skyrl', 'reward/avg_pass_at_1')!.compute(columnsOf([{ ...base, lastReward: null }]))).toMatchObject({
      unavailable: 'not in the upload',
    });
    expect(metric('skyrl', 'reward/num_zero_variance_filtered')!.compute(columnsOf([{ ...base, rewardSteps: 2 }]))).toMatchObject({
      unavailable: 'not in the upload',
    });
  });

  test.each([
    ['pass@4', undefined, 'canonical', 'pass@4'],
    ['pass@4', 'rllm', 'rllm', 'pass@4'],
    ['avg_rollout_reward', undefined, 'canonical', 'reward_mean'],
    ['reward/avg_pass_at_8', undefined, 'skyrl', 'reward/avg_pass_at_8'],
    ['eval/org_name/avg_score', undefined, 'skyrl', 'eval/org_name/avg_score'],
    ['val-core/openai/gsm8k/acc/best@4/mean', undefined, 'verl', 'best@4/mean/bootstrap'],
    ['train/agg/all/agent/solved_none', undefined, 'prime-rl', 'all/solved_none'],
    ['rollout/zero_std/count_0.5', undefined, 'slime', 'zero_std/count_0.5'],
    ['env/all/by_group/frac_mixed', undefined, 'tinker', 'by_group/frac_mixed'],
    ['frac_reward_zero_std', undefined, 'trl', 'frac_reward_zero_std'],
  ] as const)('%s (lens %s) is %s %s', (name, lens, expectedLens, key) => {
    expect(resolveMetricName(name, lens).matches[0]).toEqual({ lens: expectedLens, key });
  });

  test('an unknown name gets the nearest key, nonsense gets none', () => {
    expect(resolveMetricName('rewrd_mean')).toEqual({ matches: [], suggestion: 'reward_mean' });
    expect(resolveMetricName('reward/avg_pass_8')).toEqual({ matches: [], suggestion: 'reward/avg_pass_at_8' });
    expect(resolveMetricName('x'.repeat(10_000))).toEqual({ matches: [], suggestion: null });
    expect(metric('canonical', 'pass@0')).toBeNull();
  });
});
