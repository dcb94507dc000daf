import { rewardMean, rewardStd, toolErrorRate } from '../canonical.ts';
import { figure, type MetricAnswer, type RolloutFacts, scoreOf } from '../facts.ts';
import type { LensDefinition } from '../lens.ts';
import { std } from '../summary.ts';
import { groupsOf, joinNotes, notInUpload, ungroupedNote } from './shared.ts';

type Rows = readonly RolloutFacts[];

/**
 * `torch.isclose(std, 0)` of single-precision rewards: absolute tolerance 1e-8; a deviation that does not exist is not close to 0. We add up
 * more exactly: TRL's mean is single-precision, too, in the order in which torch adds on the device, and on a CPU it finds a deviation in some
 * groups of equal fractions (eight times 0.7), which are then missing in its figure.
 */
function isStdZero(rows: Rows): boolean {
  const rewards = rows.map(scoreOf).filter((reward) => reward !== null);
  const deviation = std(rewards.map(Math.fround), 1);
  return deviation !== null && Math.fround(deviation) <= 1e-8;
}

/** A fraction of samples, scored or not. Groups of one are left out (decision 14.14). */
function fracZeroStd(rows: Rows): MetricAnswer {
  const groups = groupsOf(rows).filter((group) => group.length > 1);
  const samples = groups.reduce((total, group) => total + group.length, 0);
  const flat = groups.filter(isStdZero).reduce((total, group) => total + group.length, 0);
  const alone = groupsOf(rows).length - groups.length;
  return figure(
    samples === 0 ? null : flat / samples,
    samples,
    rows.length,
    joinNotes(alone > 0 ? `${alone} groups of one left out` : null, ungroupedNote(rows)),
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
      compute: (rows) => rewardMean(rows),
    },
    {
      key: 'reward_std',
      label: 'Reward deviation',
      formula: 'ddof 1 over the whole batch, unscorable left out',
      needs: ['reward'],
      compute: (rows) => rewardStd(rows),
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
      compute: (rows) =>
        figure(rows.length === 0 ? null : rows.reduce((total, row) => total + row.calls, 0) / rows.length, rows.length, rows.length),
    },
    {
      key: 'tools/failure_frequency',
      label: 'Tool failures',
      formula: 'failed calls / calls, 0 without calls',
      needs: ['calls', 'callErrors'],
      compute: (rows) => {
        const rate = toolErrorRate(rows);
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
