import { meanKnown } from '../canonical.ts';
import { figure, type MetricAnswer, type RolloutFacts } from '../facts.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { mean } from '../summary.ts';
import { groupsOf, joinNotes, notInUpload, nullAsZero, trainedRewards, ungroupedNote } from './shared.ts';

type Rows = readonly RolloutFacts[];
type Kind = 'mixed' | 'all_good' | 'all_bad';

function total(given: Rows): MetricAnswer {
  const { rows, note } = trainedRewards(given);
  const rewards = nullAsZero(rows);
  return figure(mean(rewards.rewards), rows.length, rows.length, joinNotes(note, rewards.note));
}

/** Equal is exact, good is ≥ 0.5, a group of one is never mixed. */
function kindOf(rewards: number[]): Kind {
  if (rewards.some((reward) => reward !== rewards[0])) return 'mixed';
  return rewards[0]! >= 0.5 ? 'all_good' : 'all_bad';
}

function fraction(given: Rows, kind: Kind): MetricAnswer {
  const { rows, note } = trainedRewards(given);
  const groups = groupsOf(rows);
  const hits = groups.filter((group) => kindOf(nullAsZero(group).rewards) === kind).length;
  return figure(
    groups.length === 0 ? null : hits / groups.length,
    groups.length,
    groups.length,
    joinNotes(note, ungroupedNote(rows), nullAsZero(rows).note),
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
      compute: (rows) => fraction(rows, kind),
    })),
    {
      key: 'turns_per_episode',
      label: 'Turns',
      formula: 'transitions / episodes',
      needs: ['turns'],
      compute: (rows) => meanKnown(rows, (row) => row.turns),
    },
    {
      key: 'total_episodes',
      label: 'Episodes',
      formula: 'episodes received',
      needs: [],
      compute: (rows) => figure(rows.length, rows.length, rows.length),
    },
    ...notInUpload('needs token counts of the trainer', ['ac_tokens_per_turn', 'ob_tokens_per_turn', 'total_ac_tokens', 'total_ob_tokens']),
  ],
  aliases: (name) => (name.startsWith('env/all/') ? [name.slice('env/all/'.length)] : []),
};
