import { z } from 'zod';
import { pageQuery } from '../platform/http/cursor.ts';

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
  org: z.string(),
  num_rollouts: z.number(),
  avg_rollout_reward: z.number().nullable().describe('Mean reward of the scored rollouts; null without any.'),
  num_scored: z.number(),
  num_errors: z.number().describe('Rollouts that failed by no fault of the policy: unscored, out of num_rollouts.'),
  num_finished: z.number(),
  avg_rollout_length: z.number().nullable().describe('Mean number of messages.'),
  last_step: z.number().nullable(),
  environments: z.array(z.string()),
  tags: z.array(z.string()),
  settings: z.record(z.string(), z.unknown()).describe('What its owner said over the normaliser.'),
  inference: z.record(z.string(), z.unknown()).nullable().describe('What step inference found: samples per prompt `n`, `confidence`.'),
  retention_days: z.number().nullable(),
  version: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  live: z.boolean(),
});
const listedRunSchema = runViewSchema.extend({
  sparkline: z.array(z.number().nullable()).describe('Mean rewards over its steps, at most 100 points; null where nothing was scored.'),
  recent: z
    .object({
      steps: z.number().describe('Newest steps that went in, at most 10; 0 where no step is known.'),
      rollouts: z.number(),
      reward: z.number().nullable(),
      reward_delta: z.number().nullable().describe('Mean reward of these steps less that of as many steps before them.'),
      pass_k: z.number().nullable().describe('The largest power of two that some group has.'),
      pass: z.number().nullable(),
      zero_variance: z.number().nullable(),
      broken_off: z.number().nullable().describe('Share of rollouts that the environment or the infrastructure broke off.'),
      tokens: z.number().nullable().describe('Mean tokens of a rollout, of the model and of tools.'),
    })
    .nullable()
    .describe(
      'Figures of the newest steps, of training where there is any; of all its rollouts together where no step is known. Null without a rollout.',
    ),
  origin: z
    .object({
      source: z.string().nullable(),
      model: z.string().nullable(),
      agent: z.string().nullable().describe('The program that played it, as its uploader named it.'),
      user: z.string().nullable().describe('Who played it: of the session that it names. Who uploaded it is not kept.'),
      key: z.string().nullable().describe('Name of the API key of that session.'),
    })
    .nullable()
    .describe('Trainer, model and people of its newest rollout; null while none is understood.'),
  phases: z.array(z.enum(['train', 'eval', 'unknown'])).describe('Of its rollouts: training, evaluation, or not known.'),
});
export const runListSchema = z.object({ runs: z.array(listedRunSchema), total: z.number(), next: z.string().nullable() });
export const difficultyQuerySchema = z.object({
  variant: z.string().optional(),
  split: z.string().optional(),
  model_name: z.string().optional(),
  min_model_params: z.coerce.number().optional(),
  max_model_params: z.coerce.number().optional(),
  training_stage: z.string().optional(),
});
export type DifficultyQuery = z.infer<typeof difficultyQuerySchema>;

const percentile = z.number();
export const difficultySchema = z.object({
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
