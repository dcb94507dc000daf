import { figure, type MetricAnswer, unavailable } from '../figure.ts';
import { ZERO_VARIANCE_TOLERANCE } from '../group-stats.ts';
import type { LensDefinition, MetricTemplate } from '../lens.ts';
import { lastRewardOf, type MetricContext, placesWhere, type RolloutColumns, scoreOf } from '../rollout-columns.ts';
import { max, mean, min } from '../summary.ts';
import { commonGroupSize, groupRewards, groupsOf, joinNotes, notInUpload, nullAsZero, subset, ungroupedNote } from './shared.ts';

function rawReward(columns: RolloutColumns): MetricAnswer {
  const { rewards, note } = nullAsZero(columns);
  return figure(mean(rewards), rewards.length, rewards.length, note);
}

/** Σ max(step reward, 0); a rollout without any reward has 0. */
function meanPositive(columns: RolloutColumns): MetricAnswer {
  const { reward, rewardPositive } = columns;
  const unknown = rewardPositive.filter((positive, at) => positive === null && scoreOf(reward[at]) !== null).length;
  if (unknown > 0) return unavailable(`step rewards of ${unknown} rollouts are not known`);
  return figure(mean(rewardPositive.map((positive) => positive ?? 0)), reward.length, reward.length, nullAsZero(columns).note);
}

/**
 * Any rollout of the uid whose last step's reward is positive. One such rollout decides a group, even if others are not known. SkyRL stores
 * 0.0 for a rollout without any reward.
 */
function passAtN(columns: RolloutColumns, context: MetricContext, label: string): MetricAnswer {
  const lastReward = (at: number) => lastRewardOf({ reward: columns.reward[at] ?? null, lastReward: columns.lastReward[at] ?? null });
  const groups = groupsOf(columns).map((group) => group.map(lastReward));
  const hits = groups.filter((rewards) => rewards.some((reward) => reward !== null && reward > 0));
  const open = groups.filter((rewards) => !hits.includes(rewards) && rewards.includes(null));
  if (open.length > 0) return unavailable(`the last step is not known in ${open.length} of ${groups.length} groups`);
  const n = sizeOf(columns, context);
  const other = label !== '' && Number(label) !== n ? `n is a label: most groups have ${n}` : null;
  return figure(
    groups.length === 0 ? null : hits.length / groups.length,
    groups.length,
    groups.length,
    joinNotes(ungroupedNote(columns), other),
  );
}

/** `n_samples_per_prompt` is not in the upload: the declared size of a group, else the most common one. */
const sizeOf = (columns: RolloutColumns, context: MetricContext): number => context.n ?? commonGroupSize(columns);
const sizes = (columns: RolloutColumns, context: MetricContext) => [sizeOf(columns, context)].filter((n) => n > 0).map(String);

/** Float mode only: every rollout has exactly one step with a reward (docs/reference/metrics.md#lenses). */
function zeroVarianceFiltered(columns: RolloutColumns): MetricAnswer {
  if (columns.rewardSteps.some((steps) => steps !== 1) || columns.reward.some((reward) => scoreOf(reward) === null))
    return unavailable('only where every rollout has one reward-bearing step');
  const groups = groupRewards(columns);
  const flat = groups.filter((rewards) => rewards.length > 1 && max(rewards)! - min(rewards)! <= ZERO_VARIANCE_TOLERANCE);
  return figure(flat.length, groups.length, groups.length, joinNotes('a count', ungroupedNote(columns)));
}

function meanOf(column: readonly (number | null)[]): MetricAnswer {
  const unknown = column.filter((value) => value === null).length;
  return unknown > 0 ? unavailable(`not known of ${unknown} rollouts`) : figure(mean(column as number[]), column.length, column.length);
}

/** `data_source` with / as _; our export writes the environment's name there. */
function sourceAt({ environment }: RolloutColumns, { environments }: MetricContext, at: number): string {
  const id = environment[at] ?? null;
  return ((environments === undefined ? id : environments.get(id)) ?? 'unknown').replaceAll('/', '_');
}

const sources = (columns: RolloutColumns, context: MetricContext) =>
  [...new Set(columns.environment.map((_, at) => sourceAt(columns, context, at)))].toSorted();
const ofSource = (columns: RolloutColumns, context: MetricContext, source: string) =>
  subset(
    columns,
    placesWhere(columns, (at) => sourceAt(columns, context, at) === source),
  );

const training: MetricTemplate[] = [
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
];

/** What an environment adds to the metrics of a batch. */
const environmentMetrics: MetricTemplate[] = [
  {
    key: 'environment/turns',
    label: 'Turns',
    formula: 'mean num_turns',
    needs: ['turns'],
    compute: ({ turns }) => meanOf(turns),
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
    compute: ({ calls }) => meanOf(calls),
  },
];

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
    compute: (columns, context, source) => rawReward(ofSource(columns, context, source)),
  },
  {
    key: 'eval/{source}/mean_positive_reward',
    label: 'Evaluation of a source, positive',
    formula: 'as reward/mean_positive_reward, one data source',
    needs: ['rewardPositive', 'environment'],
    parameters: sources,
    compute: (columns, context, source) => meanPositive(ofSource(columns, context, source)),
  },
  {
    // One parameter for both: `acme_math/pass_at_4`.
    key: 'eval/{source_pass}',
    label: 'Evaluation pass of a source',
    formula: 'as reward/avg_pass_at_{n}, one data source',
    needs: ['group', 'lastReward', 'environment'],
    parameters: (columns, context) =>
      sources(columns, context).flatMap((source) => sizes(columns, context).map((n) => `${source}/pass_at_${n}`)),
    compute(columns, context, parameter) {
      const [source, n] = parameter.split('/pass_at_') as [string, string];
      return passAtN(ofSource(columns, context, source), context, n);
    },
  },
  ...environmentMetrics.map((metric) => ({
    ...metric,
    key: `eval/all/${metric.key}`,
    label: `Evaluation: ${metric.label.toLowerCase()}`,
    formula: `${metric.formula}; SkyRL adds up what its evaluation batches print`,
  })),
];

export const skyrlLens: LensDefinition = {
  lens: 'skyrl',
  source: 'skyrl/train/generators/utils.py, skyrl/train/utils/trainer_utils.py @ a9564572',
  revision: 2,
  metrics: [
    ...[...training, ...environmentMetrics].map((metric) => ({ ...metric, phase: 'train' as const })),
    ...evaluation.map((metric) => ({ ...metric, phase: 'eval' as const })),
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
