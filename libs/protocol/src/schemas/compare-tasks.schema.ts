import { COMPARE_SORTS, DENOMINATORS, PHASES } from '../vocabularies.ts';
import { z } from 'zod';
import { scopeQuery } from './run-curves.schema.ts';
import { taskNameSchema } from './run-groups.schema.ts';

const MAX_RUNS = 4;

export const compareTasksQuerySchema = z.object({
  runs: z
    .union([z.string().transform((text) => text.split(',')), z.array(z.string())])
    .pipe(z.array(z.string().min(1).max(512)).min(2).max(MAX_RUNS))
    .describe(
      'Two to four runs by id or name: between commas, or repeated where a name holds a comma. Differences are those to the first.',
    ),
  steps: scopeQuery.steps,
  phase: scopeQuery.phase.describe('Default: the phase with the most rollouts of the first run.'),
  env: scopeQuery.env,
  den: z
    .enum(DENOMINATORS)
    .default('scored')
    .describe(
      'Rollouts of the means: `all` counts an unscored rollout as 0; `effective` leaves out rollouts that the environment or the infrastructure interrupted.',
    ),
  against: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_RUNS - 1)
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
