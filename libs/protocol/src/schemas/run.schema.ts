import { z } from 'zod';
import { PHASES, ROLLOUT_SOURCES } from '../vocabularies.ts';
import { pageQuery } from './page.schema.ts';

export const runListQuerySchema = z.object({
  ...pageQuery,
  search: z.string().optional().describe('Part of the name, any case.'),
  name: z.string().optional().describe('The exact name.'),
  tag: z.string().optional(),
});
export type RunListQuery = z.infer<typeof runListQuerySchema>;

export const runViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  org: z.string().describe('Name of the owning organisation: first segment of the page `/:org/runs/:run`.'),
  num_rollouts: z.number(),
  avg_rollout_reward: z.number().nullable().describe('Mean reward of the scored rollouts of all steps and phases; null without any.'),
  num_scored: z.number().describe('Rollouts with a reward: the denominator of `avg_rollout_reward`. An interrupted rollout has none.'),
  num_errors: z.number().describe('Rollouts that failed without fault of the policy: unscored, part of num_rollouts.'),
  num_finished: z.number(),
  avg_rollout_length: z.number().nullable().describe('Mean number of messages.'),
  last_step: z.number().nullable().describe('Largest step; null when no step is known.'),
  environments: z.array(z.string()),
  tags: z.array(z.string()),
  settings: z.record(z.string(), z.unknown()).describe('Settings of the owner that override the normaliser.'),
  inference: z.record(z.string(), z.unknown()).nullable().describe('Result of step inference: samples per prompt `n`, `confidence`.'),
  retention_days: z
    .number()
    .nullable()
    .describe('Days without new messages after which its rollouts are erased; null: the rule of the organisation.'),
  version: z.string().describe('Increases with every change of its figures.'),
  pending: z
    .number()
    .nullable()
    .describe('Rollouts whose newest events are not in the figures yet; null if the figures are complete. Counted up to 10 000.'),
  created_at: z.string(),
  updated_at: z.string(),
  live: z.boolean().describe('An event arrived in the last 10 s.'),
  finished: z.boolean().describe('Marked as finished, and no event arrived later than a minute after that.'),
});
const listedRunSchema = runViewSchema.extend({
  sparkline: z.array(z.number().nullable()).describe('Mean rewards over its steps, at most 100 points; null where nothing was scored.'),
  recent: z
    .object({
      steps: z.number().describe('Number of the newest steps included, at most 10; 0 if no step is known.'),
      rollouts: z.number(),
      scored: z.number().describe('Rollouts with a reward: the denominator of `reward`.'),
      reward: z.number().nullable(),
      reward_delta: z.number().nullable().describe('Mean reward of these steps minus that of as many earlier steps.'),
      pass_k: z.number().nullable().describe('The most common number of rollouts in a group.'),
      pass: z.number().nullable(),
      pass_groups: z.number().describe('Groups with `pass_k` scored rollouts: the denominator of `pass`.'),
      groups: z.number(),
      zero_variance: z.number().nullable(),
      broken_off: z.number().nullable().describe('Share of rollouts that the environment or the infrastructure interrupted.'),
      tokens: z.number().nullable().describe('Mean tokens of a rollout, of the model and of tools.'),
    })
    .nullable()
    .describe(
      'Figures of the newest steps, of training if there is any; of all rollouts together if no step is known. Null without a rollout.',
    ),
  origin: z
    .object({
      source: z.string().nullable(),
      model: z.string().nullable(),
      agent: z.string().nullable().describe('The program that played it, as reported by the upload.'),
      user: z.string().nullable().describe('User of the session that it names. The uploader is not stored.'),
      key: z.string().nullable().describe('Name of the API key of that session.'),
    })
    .nullable()
    .describe('Trainer, model and people of its newest rollout; null while none is understood.'),
  phases: z.array(z.enum(PHASES)).describe('Rollouts for training, for evaluation, and with unknown phase.'),
});
export const runListSchema = z.object({ runs: z.array(listedRunSchema), total: z.number(), next: z.string().nullable() });
export const taskDifficultyQuerySchema = z.object({
  variant: z.string().optional(),
  split: z.string().optional(),
  model_name: z.string().optional(),
  min_model_params: z.coerce.number().optional(),
  max_model_params: z.coerce.number().optional(),
  training_stage: z.string().optional(),
});
export type TaskDifficultyQuery = z.infer<typeof taskDifficultyQuerySchema>;

const percentile = z.number();
export const taskDifficultySchema = z.object({
  tasks: z.array(
    z.object({
      task_index: z.number(),
      avg_reward: z.number(),
      min_reward: z.number(),
      max_reward: z.number(),
      num_rollouts: z.number(),
      num_solved: z.number().describe('Of those whose reward counts as a success in their run.'),
      response_chars: z.object({
        mean: percentile,
        p1: percentile,
        p10: percentile,
        p25: percentile,
        p50: percentile,
        p75: percentile,
        p90: percentile,
        p99: percentile,
      }),
      split: z.string().nullable(),
      variant: z.string().nullable(),
    }),
  ),
});

export type RunView = z.infer<typeof runViewSchema>;
export type ListedRun = z.infer<typeof listedRunSchema>;
export type RunList = z.infer<typeof runListSchema>;
export type TaskDifficulty = z.infer<typeof taskDifficultySchema>;

const count = (max: number) => z.number().int().min(1).max(max).nullable().optional();
const reward = z.number().nullable().optional();

/** `RunSettings` of libs/rollouts. Absent settings are inferred. */
const runSettingsSchema = z.strictObject({
  nameRegex: z
    .string()
    .max(200)
    .nullable()
    .optional()
    .describe('A regex of RE2, matched in `rolloutName`; named groups task, step, sample.'),
  n: count(32_767).describe('Samples per prompt.'),
  batchSize: count(1_000_000).describe('Prompts per training step.'),
  maxTurns: count(1_000_000),
  rewardReduce: z.enum(['sum', 'last', 'max', 'mean', 'min']).nullable().optional(),
  nonterminalReward: reward,
  minReward: reward,
  maxReward: reward,
  successThreshold: reward,
  source: z.enum(ROLLOUT_SOURCES).nullable().optional(),
});

export const runChangeSchema = z.strictObject({
  settings: runSettingsSchema.optional().describe('All settings: absent ones are inferred. Stored rollouts are normalised again.'),
  retention_days: z.number().int().min(1).max(36_500).nullable().optional().describe('null: the rule of the organisation.'),
  tags: z.array(z.string().trim().min(1).max(100)).max(50).optional(),
  finished: z
    .boolean()
    .optional()
    .describe('true: the run is over, until an event arrives later than a minute from now. false: it is not.'),
});
export type RunChangeBody = z.infer<typeof runChangeSchema>;
