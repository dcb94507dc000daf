import { GROUP_SORTS, PHASES } from '../vocabularies.ts';
import { z } from 'zod';
import { rolloutRowSchema } from './rollout.schema.ts';
import { scopeQuery } from './run-curves.schema.ts';

export const groupListQuerySchema = z.object({
  steps: scopeQuery.steps,
  phase: scopeQuery.phase,
  q: z.string().max(2_000).optional().describe('Groups with a rollout of this query.'),
  sort: z.enum(GROUP_SORTS).default('step').describe('`step` costs the same at any depth; the other orders sort all groups of the run.'),
  order: z.enum(['asc', 'desc']).default('desc'),
  limit: z.coerce.number().int().min(1).max(500).default(50),
  cursor: z.string().max(400).optional(),
});
export type GroupListQuery = z.infer<typeof groupListQuerySchema>;

export const taskNameSchema = z.object({ id: z.string(), key: z.string(), index: z.number().nullable(), split: z.string().nullable() });

export const groupSchema = z.object({
  key: z.string(),
  step: z.number().nullable(),
  phase: z.enum(PHASES),
  environment: z.string().nullable(),
  task: taskNameSchema.nullable(),
  received: z.number(),
  expected: z.number().nullable(),
  complete: z.boolean().nullable().describe('Null: the expected size is not known.'),
  scored: z.number(),
  errors: z.number(),
  successes: z.number(),
  mean: z.number().nullable(),
  std: z.number().nullable().describe('ddof 1; 0 when the rewards differ by at most 1e-6.'),
  min: z.number().nullable(),
  max: z.number().nullable(),
  zero_variance: z.enum(['all-fail', 'all-pass', 'equal-other']).nullable(),
});
export const groupListSchema = z.object({
  groups: z.array(groupSchema),
  next: z.string().nullable(),
  query: z.string().nullable(),
  incomplete: z.boolean(),
});

export const groupQuerySchema = z.object({ step: z.coerce.number().int().min(0).max(2_147_483_647).optional(), phase: scopeQuery.phase });
export type GroupQuery = z.infer<typeof groupQuerySchema>;
export const groupViewSchema = groupSchema.extend({
  pass: z.array(z.object({ k: z.number(), value: z.number().nullable() })).describe('pass@k of this group, for powers of two.'),
  rollouts: z.array(
    rolloutRowSchema.extend({
      advantage: z.number().nullable().describe('(r − mean) / (std + 1e-6), ddof 1.'),
      advantage_centred: z.number().nullable().describe('r − mean.'),
      reward_trained: z
        .number()
        .nullable()
        .describe('After the post-processing of the trainer; null until the owner has set its parameters.'),
    }),
  ),
  missing: z.number().describe('Expected rollouts that did not arrive; trainers drop failed ones.'),
  note: z.string().nullable(),
});

export const runTaskListQuerySchema = z.object({
  phase: scopeQuery.phase,
  limit: z.coerce.number().int().min(1).max(200).default(100),
  cursor: z.string().max(400).optional(),
});
export type RunTaskListQuery = z.infer<typeof runTaskListQuerySchema>;
const strip = {
  task: taskNameSchema,
  environment: z.string().nullable(),
  step: z.array(z.number()).describe('Steps with a rollout of it, at most the last 500.'),
  solve: z.array(z.number().nullable()).describe('Successes per scored rollout at each.'),
  scored: z.array(z.number()),
  received: z.array(z.number()).describe('Rollouts of each step, also those that no figure includes: interrupted and without a reward.'),
  solve_rate: z
    .object({
      rate: z.number(),
      low: z.number(),
      high: z.number(),
      successes: z.number(),
      scored: z.number(),
      effective: z.number().describe('Independent rollouts with the same precision.'),
    })
    .nullable()
    .describe('Successes per scored rollout over these steps, with a 95 % Wilson interval clustered by step.'),
  first_solved: z.number().nullable().describe('First step with a success.'),
  flips: z.number().describe('Number of changes between solved (at least half of the rollouts) and unsolved.'),
  regressed_at: z.number().nullable().describe('It was solved before this step and is unsolved since.'),
  now: z.object({ step: z.number(), successes: z.number(), scored: z.number() }).nullable(),
};
export const runTaskListSchema = z.object({ tasks: z.array(z.object(strip)), next: z.string().nullable() });
export const runTaskSchema = z.object({
  ...strip,
  reward: z
    .object({ mean: z.array(z.number().nullable()), low: z.array(z.number().nullable()), high: z.array(z.number().nullable()) })
    .describe('Mean reward at each step over the scored rollouts, with a 95 % interval (Student’s t; null for fewer than two).'),
  groups: z.array(groupSchema).describe('Newest step first, at most 500.'),
});

export type Group = z.infer<typeof groupSchema>;
export type GroupList = z.infer<typeof groupListSchema>;
export type GroupView = z.infer<typeof groupViewSchema>;
export type RunTaskList = z.infer<typeof runTaskListSchema>;
export type RunTask = z.infer<typeof runTaskSchema>;
