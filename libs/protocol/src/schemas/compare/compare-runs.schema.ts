import { COMPARE_METRICS, DENOMINATORS, PHASES } from '../../vocabularies.ts';
import { z } from 'zod';
import { scopeQuery, stepRange } from '../run-curves.schema.ts';
import { taskNameSchema } from '../run-groups.schema.ts';

export const MAX_COMPARED_RUNS = 4;

/** What both comparisons of runs are asked. */
export const compareScope = {
  runs: z
    .union([z.string().transform((text) => text.split(',')), z.array(z.string())])
    .pipe(z.array(z.string().min(1).max(512)).min(2).max(MAX_COMPARED_RUNS))
    .describe(
      'Two to four runs by id or name: between commas, or repeated where a name holds a comma. Differences are those to the first.',
    ),
  steps: z
    .union([z.literal('common'), z.literal('all'), stepRange])
    .default('common')
    .describe('`common`: the steps that every run has; a range: those of them in it, as `40..80`; `all`: every rollout of each run.'),
  phase: scopeQuery.phase.describe('Default: the phase with the most rollouts of the first run.'),
  env: scopeQuery.env,
  den: z
    .enum(DENOMINATORS)
    .default('effective')
    .describe(
      'Rollouts that count: `effective` leaves out unscored rollouts and those that the environment or the infrastructure interrupted; `scored` only unscored ones; `all` counts an unscored rollout as 0.',
    ),
};

export const compareQuerySchema = z.object(compareScope);
export type CompareQuery = z.infer<typeof compareQuerySchema>;

export const comparedStepsSchema = z
  .object({
    choice: z.enum(['common', 'all', 'range']).describe('As requested.'),
    common: z.boolean().describe('Only steps that every run has are compared. False with `all`, and if the runs have no step in common.'),
    count: z.number().nullable().describe('Number of compared steps; null: every rollout counts, also those without a step.'),
    from: z.number().nullable(),
    to: z.number().nullable(),
    words: z.string().describe('As a sentence.'),
  })
  .describe('The steps that the figures are made of.');

const interval = z.object({ low: z.number(), high: z.number() }).nullable();
const side = z.object({
  mean: z.number().describe('Mean over the tasks, each with equal weight; over rollouts if there are not two tasks.'),
  tasks: z.number(),
  samples: z.number().describe('Number of rollouts (calls for `tool_error`).'),
});

const comparedMetricSchema = z.object({
  metric: z.enum(COMPARE_METRICS),
  method: z
    .enum(['paired', 'unpaired', 'rollouts'])
    .describe(
      '`paired`: Student-t over the differences of common tasks; `unpaired`: Welch over the tasks of each run; `rollouts`: Welch over rollouts, where a run has no two tasks.',
    ),
  first: side,
  other: side,
  difference: z.number().describe('Other run minus first run.'),
  low: z.number().nullable().describe('95 %; null if the variance is unknown.'),
  high: z.number().nullable(),
  p: z.number().nullable().describe('Two-sided.'),
  bootstrap: interval.describe('95 % by 1 000 draws of tasks with seed 42; only for `reward_mean` and `success`.'),
  unpaired: interval.describe('The 95 % interval without pairing, over the same tasks.'),
  power: z
    .object({
      detectable: z.number().describe('Smallest true difference that is detected with a probability of 80 %.'),
      resolved: z.boolean().describe('The interval excludes zero.'),
      needed: z
        .number()
        .nullable()
        .describe('Tasks per run (rollouts for `rollouts`) that detect the present difference; null: no useful number.'),
      samples_per_task_needed: z.number().nullable().describe('The same by more samples of the present tasks.'),
    })
    .nullable(),
  power_words: z.string(),
});

const flipSchema = z.object({
  task: taskNameSchema,
  environment: z.string().nullable(),
  first: z.object({ success: z.number(), samples: z.number() }),
  other: z.object({ success: z.number(), samples: z.number() }),
});

export const compareSchema = z.object({
  phase: z.enum(PHASES).nullable(),
  den: z.enum(DENOMINATORS),
  steps: comparedStepsSchema,
  runs: z
    .array(
      z.object({
        id: z.string(),
        name: z.string(),
        tasks: z.number().describe('With a rollout that counts.'),
        samples: z.number().describe('Rollouts that count.'),
        left_out: z.number().describe('Rollouts in the scope that do not count.'),
        steps: z.number().describe('Known steps of the run in the phase.'),
        pending: z.number().nullable().describe('Rollouts whose newest events the figures do not contain; null: none.'),
      }),
    )
    .describe('In the requested order.'),
  cut: z
    .number()
    .nullable()
    .describe('A run has more tasks than a comparison reads: the figures are of this many, chosen by a hash. Null: all tasks are read.'),
  pairs: z
    .array(
      z.object({
        run: z.string(),
        common_tasks: z.number(),
        metrics: z.array(comparedMetricSchema).describe('Without metrics that a run has no data for.'),
        solved: z
          .object({
            both: z.number(),
            neither: z.number(),
            lost: z.number().describe('Solved in the first run only. A task is solved if at least half of its rollouts succeed.'),
            gained: z.number().describe('Solved in the other run only.'),
            p: z.number().describe('McNemar: that as many tasks are lost as gained.'),
            exact: z.boolean().describe('By the binomial distribution (up to 25 changes); else chi-squared with continuity correction.'),
            flips: z.array(flipSchema).describe('The lost and gained tasks with the largest change of their success, at most 100.'),
          })
          .nullable()
          .describe('Null without common tasks.'),
        environments: z
          .array(
            z.object({
              environment: z.string().nullable(),
              method: z.enum(['paired', 'unpaired', 'rollouts']),
              tasks: z.number(),
              difference: z.number(),
              low: z.number().nullable(),
              high: z.number().nullable(),
              p: z.number().nullable(),
              p_holm: z.number().nullable().describe('Corrected for the number of environments (Holm).'),
            }),
          )
          .describe('Mean reward by environment, at most 50; empty for runs of one environment.'),
      }),
    )
    .describe('Every run but the first, against the first.'),
});
export type ComparedRuns = z.infer<typeof compareSchema>;
