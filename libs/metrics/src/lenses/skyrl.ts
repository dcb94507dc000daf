import { figure, type MetricAnswer, type MetricContext, type RolloutFacts, scoreOf, unavailable } from '../facts.ts';
import { ZERO_VARIANCE_TOLERANCE } from '../group-stats.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { max, mean, min } from '../summary.ts';
import { groupsOf, joinNotes, largestGroup, notInUpload, nullAsZero, ungroupedNote } from './shared.ts';

type Rows = readonly RolloutFacts[];

function rawReward(rows: Rows): MetricAnswer {
  const { rewards, note } = nullAsZero(rows);
  return figure(mean(rewards), rows.length, rows.length, note);
}

/** Σ max(step reward, 0); a rollout without any reward has 0. */
function meanPositive(rows: Rows): MetricAnswer {
  const unknown = rows.filter((row) => row.rewardPositive === null && scoreOf(row) !== null).length;
  if (unknown > 0) return unavailable(`step rewards of ${unknown} rollouts are not known`);
  return figure(mean(rows.map((row) => row.rewardPositive ?? 0)), rows.length, rows.length, nullAsZero(rows).note);
}

/** Any rollout of the uid whose last step's reward is positive. One hit settles a group, whatever is not known of the others. */
function passAtN(rows: Rows, context: MetricContext, label: string): MetricAnswer {
  const groups = groupsOf(rows);
  const hits = groups.filter((group) => group.some((row) => row.lastReward !== null && row.lastReward > 0));
  const open = groups.filter((group) => !hits.includes(group) && group.some((row) => row.lastReward === null));
  if (open.length > 0) return unavailable(`the last step is not known in ${open.length} of ${groups.length} groups`);
  const n = context.n ?? largestGroup(rows);
  const other = label !== '' && Number(label) !== n ? `n is a label: groups have ${n}` : null;
  return figure(
    groups.length === 0 ? null : hits.length / groups.length,
    groups.length,
    groups.length,
    joinNotes(ungroupedNote(rows), other),
  );
}

const sizes = (rows: Rows, context: MetricContext) => [context.n ?? largestGroup(rows)].filter((n) => n > 0).map(String);

/** Float mode only (decision 14.7): every rollout with exactly one reward-bearing step. */
function zeroVarianceFiltered(rows: Rows): MetricAnswer {
  if (rows.some((row) => row.rewardSteps !== 1 || scoreOf(row) === null))
    return unavailable('only where every rollout has one reward-bearing step');
  const groups = groupsOf(rows);
  const flat = groups.filter((group) => {
    const rewards = group.map((row) => row.reward!);
    return rewards.length > 1 && max(rewards)! - min(rewards)! <= ZERO_VARIANCE_TOLERANCE;
  });
  return figure(flat.length, groups.length, groups.length, joinNotes('a count', ungroupedNote(rows)));
}

function meanOf(rows: Rows, valueOf: (row: RolloutFacts) => number | null): MetricAnswer {
  const values = rows.map(valueOf);
  const unknown = values.filter((value) => value === null).length;
  return unknown > 0 ? unavailable(`not known of ${unknown} rollouts`) : figure(mean(values as number[]), rows.length, rows.length);
}

/** `data_source` with / as _; our export writes the environment's name there. */
const sourceOf = (row: RolloutFacts) => (row.environment ?? 'unknown').replaceAll('/', '_');
const sources = (rows: Rows) => [...new Set(rows.map(sourceOf))].toSorted();
const ofSource = (rows: Rows, source: string) => rows.filter((row) => sourceOf(row) === source);

const evaluation: MetricTemplate[] = [
  { key: 'eval/all/avg_score', label: 'Evaluation score', formula: 'as reward/avg_raw_reward', needs: ['reward'], compute: rawReward },
  {
    key: 'eval/all/mean_positive_reward',
    label: 'Evaluation, positive',
    formula: 'as reward/mean_positive_reward',
    needs: ['rewardPositive'],
    compute: meanPositive,
  },
  {
    key: 'eval/all/pass_at_{n}',
    label: 'Evaluation pass',
    formula: 'as reward/avg_pass_at_{n}',
    needs: ['group', 'lastReward'],
    parameters: sizes,
    compute: passAtN,
  },
  {
    key: 'eval/{source}/avg_score',
    label: 'Evaluation score of a source',
    formula: 'as reward/avg_raw_reward, one data source',
    needs: ['reward', 'environment'],
    parameters: sources,
    compute: (rows, _context, source) => rawReward(ofSource(rows, source)),
  },
  {
    key: 'eval/{source}/mean_positive_reward',
    label: 'Evaluation of a source, positive',
    formula: 'as reward/mean_positive_reward, one data source',
    needs: ['rewardPositive', 'environment'],
    parameters: sources,
    compute: (rows, _context, source) => meanPositive(ofSource(rows, source)),
  },
];

export const skyrlLens: LensDefinition = {
  lens: 'skyrl',
  source: 'skyrl/train/generators/utils.py, skyrl/train/utils/trainer_utils.py @ a9564572',
  metrics: [
    { key: 'reward/avg_raw_reward', label: 'Raw reward', formula: 'mean_i Σ_t r_i[t], null = 0', needs: ['reward'], compute: rawReward },
    {
      key: 'reward/mean_positive_reward',
      label: 'Positive reward',
      formula: 'mean_i Σ_t max(r_i[t], 0)',
      needs: ['rewardPositive'],
      compute: meanPositive,
    },
    {
      key: 'reward/avg_pass_at_{n}',
      label: 'Pass',
      formula: '#{uid: any last-token reward > 0} / #uid; n is a label',
      needs: ['group', 'lastReward'],
      parameters: sizes,
      compute: passAtN,
    },
    {
      key: 'reward/num_zero_variance_filtered',
      label: 'Zero-variance groups',
      formula: 'count of uids with > 1 rollout and max − min ≤ 1e-6 (float mode)',
      needs: ['group', 'reward', 'rewardSteps'],
      compute: zeroVarianceFiltered,
    },
    {
      key: 'environment/turns',
      label: 'Turns',
      formula: 'mean num_turns',
      needs: ['turns'],
      compute: (rows) => meanOf(rows, (row) => row.turns),
    },
    {
      key: 'environment/total_reward',
      label: 'Environment reward',
      formula: 'mean total_reward, null = 0',
      needs: ['reward'],
      compute: rawReward,
    },
    {
      key: 'environment/num_rewards',
      label: 'Executed calls',
      formula: 'mean number of tool results',
      needs: ['calls'],
      compute: (rows) => meanOf(rows, (row) => row.calls),
    },
    ...evaluation,
    ...notInUpload('needs token counts and loss masks of the trainer', [
      ...['min', 'max', 'avg', 'std'].flatMap((how) => [`generate/${how}_num_tokens`, `generate/${how}_assistant_tokens`]),
      'generate/avg_tokens_non_zero_rewards',
      'generate/avg_tokens_zero_rewards',
      ...['mean', 'std', 'max'].map((how) => `generate/tokens_per_turn_${how}`),
      'loss/avg_final_rewards',
    ]),
    ...notInUpload(
      'needs the clock of the trainer',
      ['completion', 'llm', 'env', 'other'].flatMap((part) =>
        ['mean', 'p90', 'max'].map((how) => `generate/trajectory_time_${part}_${how}`),
      ),
    ),
    ...notInUpload('dropped rollouts are not marked in the upload', [
      'reward_dropped/avg_raw_reward',
      'reward_dropped/mean_positive_reward',
      'reward_dropped/avg_pass_at_{n}',
    ]),
  ],
};
