import { rewardMean, rewardStd, toolErrorRate } from '../canonical.ts';
import { figure, type MetricAnswer } from '../figure.ts';
import type { LensDefinition } from '../lens.ts';
import { countOf, type RolloutColumns, scoreOf } from '../rollout-columns.ts';
import { std } from '../summary.ts';
import { groupsOf, joinNotes, notInUpload, ungroupedNote } from './shared.ts';

/** TRL does not know which rollouts were interrupted. */
const SCORED = { denominator: 'scored' } as const;

/**
 * `torch.isclose(std, 0)` of single-precision rewards: absolute tolerance 1e-8; a missing deviation is not close to 0. Our sums are more
 * exact: TRL's mean is single-precision too, in the order in which torch adds on the device. On a CPU it finds a deviation in some groups of
 * equal fractions (eight times 0.7), which are then missing in its figure.
 */
function isStdZero({ reward }: RolloutColumns, places: readonly number[]): boolean {
  const rewards = places.map((at) => scoreOf(reward[at])).filter((score) => score !== null);
  const deviation = std(rewards.map(Math.fround), 1);
  return deviation !== null && Math.fround(deviation) <= 1e-8;
}

/** A fraction of samples, scored or not. Groups of one are left out. */
function fracZeroStd(columns: RolloutColumns): MetricAnswer {
  const all = groupsOf(columns);
  const groups = all.filter((group) => group.length > 1);
  const samples = groups.reduce((total, group) => total + group.length, 0);
  const flat = groups.filter((group) => isStdZero(columns, group)).reduce((total, group) => total + group.length, 0);
  const single = all.length - groups.length;
  return figure(
    samples === 0 ? null : flat / samples,
    samples,
    countOf(columns),
    joinNotes(single > 0 ? `${single} groups of one left out` : null, ungroupedNote(columns)),
  );
}

export const trlLens: LensDefinition = {
  lens: 'trl',
  source: 'trl/trainer/grpo_trainer.py @ f2cd577',
  metrics: [
    {
      key: 'reward',
      label: 'Reward',
      formula: 'nanmean of r; unscorable rollouts are left out',
      needs: ['reward'],
      compute: (columns) => rewardMean(columns, SCORED),
    },
    {
      key: 'reward_std',
      label: 'Reward deviation',
      formula: 'ddof 1 over the whole batch, unscorable left out',
      needs: ['reward'],
      compute: (columns) => rewardStd(columns, SCORED),
    },
    {
      key: 'frac_reward_zero_std',
      label: 'Rollouts without signal',
      formula: 'rollouts in groups with std ≈ 0 (1e-8) / rollouts in groups',
      needs: ['group', 'reward'],
      compute: fracZeroStd,
    },
    {
      key: 'tools/call_frequency',
      label: 'Tool calls',
      formula: 'calls / rollouts',
      needs: ['calls'],
      compute: ({ calls }) =>
        figure(calls.length === 0 ? null : calls.reduce((total, count) => total + count, 0) / calls.length, calls.length, calls.length),
    },
    {
      key: 'tools/failure_frequency',
      label: 'Tool failures',
      formula: 'failed calls / calls, 0 without calls',
      needs: ['calls', 'callErrors'],
      compute: (columns) => {
        const rate = toolErrorRate(columns);
        return figure(rate.value ?? 0, rate.denominator, rate.of);
      },
    },
    ...notInUpload('needs token ids of the trainer', [
      ...['mean', 'min', 'max'].flatMap((how) => [`completions/${how}_length`, `completions/${how}_terminated_length`]),
      'completions/clipped_ratio',
      'kl',
      'entropy',
    ]),
  ],
  aliases: (name) => [name.replace(/^(?:train\/|eval\/|eval_)/, '')].filter((key) => key !== name),
};
