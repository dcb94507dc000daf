import { COMPARE_SORTS, DENOMINATORS, PHASES } from '../../vocabularies.ts';
import { z } from 'zod';
import { compareScope, comparedStepsSchema, MAX_COMPARED_RUNS } from './compare-runs.schema.ts';
import { taskNameSchema } from '../run-groups.schema.ts';

export const compareTasksQuerySchema = z.object({
  ...compareScope,
  against: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_COMPARED_RUNS - 1)
    .default(1)
    .describe('The run that `sort` compares with the first: 1 for the second one.'),
  sort: z.enum(COMPARE_SORTS).default('size').describe('`size`: absolute difference; `first`, `other`: mean reward.'),
  order: z.enum(['asc', 'desc']).default('desc'),
  limit: z.coerce.number().int().min(1).max(500).default(100),
  cursor: z.string().max(400).optional(),
});
export type CompareTasksQuery = z.infer<typeof compareTasksQuerySchema>;

export const compareTasksSchema = z.object({
  phase: z.enum(PHASES).nullable(),
  den: z.enum(DENOMINATORS),
  steps: comparedStepsSchema,
  runs: z
    .array(z.object({ id: z.string(), name: z.string(), tasks: z.number().describe('With a scored rollout in the scope.') }))
    .describe('In the requested order.'),
  common: z.number().describe('Tasks that every run scored in the scope: those of the table.'),
  pairs: z
    .array(
      z.object({
        run: z.string(),
        mean: z.number().nullable().describe('Mean over the common tasks of (mean reward of this run − that of the first).'),
        low: z.number().nullable().describe('95 %, Student-t over the differences of tasks; null below two tasks.'),
        high: z.number().nullable(),
        better: z.number(),
        worse: z.number(),
        equal: z.number().describe('Tasks whose means differ by at most 1e-9.'),
      }),
    )
    .describe('Every run but the first, against the first.'),
  tasks: z.array(
    z.object({
      task: taskNameSchema,
      environment: z.string().nullable(),
      runs: z.array(
        z.object({
          mean: z.number().describe('Reward over the rollouts of the task that `den` counts.'),
          scored: z.number().describe('Number of these rollouts.'),
          successes: z.number().describe('Among the scored ones.'),
        }),
      ),
    }),
  ),
  next: z.string().nullable(),
});
export type ComparedTasks = z.infer<typeof compareTasksSchema>;
