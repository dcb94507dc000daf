import * as canonical from '../canonical.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { passSizes } from '../pass.ts';
import { remember } from '../remember.ts';
import type { MetricContext, RolloutColumns } from '../rollout-columns.ts';
import { commonGroupSize, largestGroup } from './shared.ts';

const ks = (columns: RolloutColumns, context: MetricContext) =>
  remember(columns, context, 'pass sizes', () =>
    passSizes(context.n ?? largestGroup(columns), context.n ?? commonGroupSize(columns)).map(String),
  );
const simple = (
  key: string,
  label: string,
  formula: string,
  compute: MetricTemplate['compute'],
  needs: MetricTemplate['needs'] = ['reward'],
): MetricTemplate => ({ key, label, formula, needs, compute });

const rewards: MetricTemplate[] = [
  simple('reward_mean', 'Mean reward', 'Σ r / rollouts (sample-weighted)', canonical.rewardMean),
  simple('reward_std', 'Reward deviation', 'ddof 1 unless the context says 0', canonical.rewardStd),
  simple('reward_min', 'Least reward', 'min r', canonical.rewardMin),
  simple('reward_max', 'Largest reward', 'max r', canonical.rewardMax),
  {
    key: 'reward_p{p}',
    label: 'Reward percentile',
    formula: 'p-th percentile of r, linear interpolation',
    needs: ['reward'],
    parameters: () => ['10', '25', '50', '75', '90'],
    compute: (columns, context, p) => canonical.rewardPercentile(columns, Number(p) / 100, context),
  },
  simple('success', 'Success rate', 'rollouts with r ≥ τ / rollouts', canonical.successRate),
  simple('scored', 'Scored rollouts', 'rollouts with a reward or a partial sum', (columns) =>
    canonical.denominatorFigure(columns, 'scored'),
  ),
  simple(
    'effective',
    'Effective rollouts',
    'scored and not env_error, infra_error, timeout, aborted, cancelled',
    (columns) => canonical.denominatorFigure(columns, 'effective'),
    ['reward', 'stop', 'failure'],
  ),
];

const perGroup: MetricTemplate[] = [
  {
    key: 'pass@{k}',
    label: 'pass@k',
    formula: 'mean over groups with n ≥ k of 1 − C(n−c,k)/C(n,k)',
    needs: ['group', 'reward'],
    parameters: ks,
    compute: (columns, context, k) => canonical.passAtK(columns, Number(k), context),
  },
  {
    key: 'pass^{k}',
    label: 'pass^k',
    formula: 'mean over groups with n ≥ k of C(c,k)/C(n,k)',
    needs: ['group', 'reward'],
    parameters: ks,
    compute: (columns, context, k) => canonical.passHatK(columns, Number(k), context),
  },
  ...(['low', 'high'] as const).map((end): MetricTemplate => ({
    key: `pass@{k}_ci_${end}`,
    label: `pass@k, 95 % ${end}`,
    formula: 'group bootstrap, 1000 draws, percentile interval',
    needs: ['group', 'reward'],
    parameters: ks,
    compute: (columns, context, k) =>
      canonical.intervalFigure(columns, context, canonical.passAtKInterval(columns, Number(k), context), end, Number(k)),
  })),
  simple('avg@n', 'avg@n', 'mean of group means (prompt-weighted)', canonical.avgAtN, ['group', 'reward']),
  ...(['low', 'high'] as const).map((end) =>
    simple(
      `avg@n_ci_${end}`,
      `avg@n, 95 % ${end}`,
      'mean ± t(G−1, .975)·s/√G over group means',
      (columns, context) => canonical.intervalFigure(columns, context, canonical.avgInterval(columns, context), end),
      ['group', 'reward'],
    ),
  ),
  simple('groups', 'Groups', 'distinct groups', canonical.groupsFigure, ['group']),
  ...(['none', 'some', 'all'] as const).map((which) =>
    simple(
      `solved_${which}`,
      `Groups solved: ${which}`,
      `groups with ${{ none: 'c = 0', some: '0 < c < n', all: 'c = n' }[which]} / groups with a counted rollout`,
      (columns, context) => canonical.solved(columns, which, context),
      ['group', 'reward'],
    ),
  ),
  simple(
    'zero_variance',
    'Groups without signal',
    'groups with n ≥ 2 and max − min ≤ 1e-6 / groups with n ≥ 2',
    (columns, context) => canonical.zeroVariance(columns, context),
    ['group', 'reward'],
  ),
  ...(
    [
      ['all_fail', 'all-fail', 'all r ≤ 0'],
      ['all_pass', 'all-pass', 'all r ≥ τ'],
      ['equal_other', 'equal-other', 'equal, neither all-fail nor all-pass'],
    ] as const
  ).map(([key, kind, what]) =>
    simple(
      `zero_variance_${key}`,
      `Groups without signal, ${kind}`,
      `${what} / groups with n ≥ 2`,
      (columns, context) => canonical.zeroVariance(columns, context, kind),
      ['group', 'reward'],
    ),
  ),
];

const conduct: MetricTemplate[] = [
  simple('truncated', 'Truncated', 'stop ∈ {max_turns, max_tokens, context_length} / stop known', canonical.truncatedRate, ['stop']),
  simple('tool_error', 'Tool errors', 'failed results / results', canonical.toolErrorRate, ['calls', 'callErrors']),
  simple('turns', 'Turns', 'mean turns of the model', ({ turns }) => canonical.meanKnown(turns), ['turns']),
  simple('calls', 'Tool calls', 'mean tool results', ({ calls }) => canonical.meanKnown(calls), ['calls']),
  simple('tokens_out', 'Output tokens', 'mean tokens of the model', ({ tokensOut }) => canonical.meanKnown(tokensOut), ['tokensOut']),
  simple('tokens_tool', 'Tool tokens', 'mean tokens of tool results', ({ tokensTool }) => canonical.meanKnown(tokensTool), ['tokensTool']),
];

export const canonicalLens: LensDefinition = {
  lens: 'canonical',
  source: 'Palestra, libs/metrics/src/canonical.ts',
  metrics: [...rewards, ...perGroup, ...conduct],
  aliases: (name) => (name === 'avg_rollout_reward' ? ['reward_mean'] : []),
};
