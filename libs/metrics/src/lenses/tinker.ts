import { meanKnown } from '../canonical.ts';
import { figure, type MetricAnswer } from '../figure.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { countOf, type RolloutColumns } from '../rollout-columns.ts';
import { mean } from '../summary.ts';
import { groupRewards, joinNotes, notInUpload, nullAsZero, ungroupedNote, withTrainedRewards } from './shared.ts';

type Kind = 'mixed' | 'all_good' | 'all_bad';

function total(uploaded: RolloutColumns): MetricAnswer {
  const { columns, note } = withTrainedRewards(uploaded);
  const { rewards, note: nulls } = nullAsZero(columns);
  return figure(mean(rewards), rewards.length, rewards.length, joinNotes(note, nulls));
}

/** Equal is exact, good is ≥ 0.5, a group of one is never mixed. */
function kindOf(rewards: number[]): Kind {
  if (rewards.some((reward) => reward !== rewards[0])) return 'mixed';
  return rewards[0]! >= 0.5 ? 'all_good' : 'all_bad';
}

function fraction(uploaded: RolloutColumns, kind: Kind): MetricAnswer {
  const { columns, note } = withTrainedRewards(uploaded);
  const groups = groupRewards(columns);
  const hits = groups.filter((rewards) => kindOf(rewards) === kind).length;
  return figure(
    groups.length === 0 ? null : hits / groups.length,
    groups.length,
    groups.length,
    joinNotes(note, ungroupedNote(columns), nullAsZero(columns).note),
  );
}

const formulas: Record<Kind, string> = { mixed: 'rewards not all equal', all_good: 'all equal and ≥ 0.5', all_bad: 'all equal and < 0.5' };

export const tinkerLens: LensDefinition = {
  lens: 'tinker',
  source: 'tinker_cookbook/rl/metric_util.py @ 9dfcc3a',
  metrics: [
    { key: 'reward/total', label: 'Reward', formula: 'mean of total rewards, null = 0', needs: ['reward'], compute: total },
    ...(Object.keys(formulas) as Kind[]).map((kind): MetricTemplate => ({
      key: `by_group/frac_${kind}`,
      label: `Groups, ${kind}`,
      formula: `groups ${formulas[kind]} / groups`,
      needs: ['group', 'reward'],
      compute: (columns) => fraction(columns, kind),
    })),
    {
      key: 'turns_per_episode',
      label: 'Turns',
      formula: 'transitions / episodes',
      needs: ['turns'],
      compute: ({ turns }) => meanKnown(turns),
    },
    {
      key: 'total_episodes',
      label: 'Episodes',
      formula: 'episodes received',
      needs: [],
      compute: (columns) => figure(countOf(columns), countOf(columns), countOf(columns)),
    },
    ...notInUpload('needs token counts of the trainer', ['ac_tokens_per_turn', 'ob_tokens_per_turn', 'total_ac_tokens', 'total_ob_tokens']),
  ],
  aliases: (name) => (name.startsWith('env/all/') ? [name.slice('env/all/'.length)] : []),
};
