import { AXES, DENOMINATORS, LENSES, PHASES, PROVENANCES } from '../vocabularies.ts';
import { z } from 'zod';

const provenance = z.enum(PROVENANCES);
/** `40..80`, `40..`, `..80` or `40`. */
export const stepRange = z
  .string()
  .regex(/^(?:\d{1,9}\.\.\d{0,9}|\.\.\d{1,9}|\d{1,9})$/, 'expected a step, or from..to')
  .transform((text) => {
    const [from, to] = text.includes('..') ? text.split('..') : [text, text];
    return { from: from === '' ? 0 : Number(from), to: to === '' ? 2_147_483_647 : Math.min(Number(to), 2_147_483_647) };
  });
export const scopeQuery = {
  steps: stepRange.optional().describe('Steps, both ends included: `40..80`, `40..`, `40`.'),
  env: z.string().max(512).optional().describe('One environment, by its name.'),
  phase: z.enum(PHASES).optional(),
};
const lensQuery = {
  lens: z
    .enum(LENSES)
    .default('canonical')
    .describe('Source of the definitions. Metric names of another lens are also accepted; the answer names their lens.'),
  den: z.enum(DENOMINATORS).default('effective').describe('Rollouts of canonical figures; the lens of a trainer has its rule.'),
};

export const runSeriesQuerySchema = z.object({
  ...scopeQuery,
  ...lensQuery,
  m: z
    .union([z.string().transform((one) => [one]), z.array(z.string())])
    .pipe(z.array(z.string().min(1).max(200)).min(1).max(20))
    .default(['reward_mean'])
    .describe('Metrics, repeated: ids of Palestra or names of trainers; `pass@{k}` stands for every k.'),
  x: z
    .enum(AXES)
    .default('step')
    .describe(
      '`window`: time of arrival, for rollouts without a known step; also the answer to `step` if no step is known. `time`: arrival of the first rollout of the step, milliseconds since the epoch. `count`: rollouts up to and including the step.',
    ),
  by: z.enum(['env']).optional().describe('One series for each environment.'),
  max: z.coerce.number().int().min(4).max(10_000).default(2_000).describe('Maximum points of a series; extremes are kept.'),
});
export type RunSeriesQuery = z.infer<typeof runSeriesQuerySchema>;

/** The actual axis of the points or columns, which may differ from the requested one. */
const axis = {
  axis: z.enum(AXES).describe('Kind of `x`. `window` if no step is known: starts of the windows in milliseconds since the epoch.'),
  axis_label: z.string().describe('As text: `arrival window of 5 min`.'),
  window_ms: z.number().nullable().describe('Width of an arrival window; null: points are steps.'),
};

export const runSeriesSchema = z.object({
  x: z.enum(AXES).describe('As requested.'),
  ...axis,
  series: z.array(
    z.object({
      m: z.string().describe('As requested.'),
      key: z.string(),
      lens: z.enum(LENSES),
      den: z.enum(DENOMINATORS).nullable().describe('Null: the rule of the trainer.'),
      label: z.string(),
      formula: z.string(),
      phase: z.enum(PHASES),
      env: z.string().nullable(),
      ...axis,
      step: z.array(z.number()).describe('For arrival windows their number from 0. It is not a step, and no query finds it.'),
      x: z.array(z.number().nullable()),
      value: z.array(z.number().nullable()).describe('Null: there was no input, or the upload does not contain it (`unavailable`).'),
      denominator: z.array(z.number()).describe('Number of included rollouts, groups or results.'),
      of: z.array(z.number()).describe('Number of all of them.'),
      provenance: z.array(provenance).describe('The weakest provenance of the inputs, including the step.'),
      incomplete_groups: z.array(z.number()).describe('Incomplete groups of the step; pages draw them hollow.'),
      notes: z.array(z.object({ at: z.number(), note: z.string() })),
      unavailable: z.boolean().describe('The upload has the inputs of this metric at no step.'),
    }),
  ),
  unknown_step: z.number().describe('Rollouts without a known step, which no series of steps contains.'),
  incomplete: z.boolean().describe('Some figures are still being computed; repeat the request.'),
});

export const runHeatmapQuerySchema = z.object({
  ...scopeQuery,
  x: z.enum(['step', 'window']).default('step').describe('window: as in series.'),
  y: z.enum(['reward', 'turns', 'tokens']).default('reward'),
  bins: z.coerce
    .number()
    .int()
    .refine((bins) => [5, 10, 25, 50].includes(bins), 'expected 5, 10, 25 or 50')
    .default(50),
  max: z.coerce.number().int().min(1).max(2_000).default(1_000).describe('Maximum columns; neighbouring steps are merged.'),
});
export type RunHeatmapQuery = z.infer<typeof runHeatmapQuerySchema>;
export const runHeatmapSchema = z.object({
  ...axis,
  y: z.enum(['reward', 'turns', 'tokens']),
  phase: z.enum(PHASES).nullable(),
  edges: z.array(z.number()).describe('bins + 1 edges; a bin includes its edge farther from zero.'),
  from: z.array(z.number()).describe('First step of each column, or where its first window begins.'),
  to: z.array(z.number()).describe('Last step of each column, or where its last window ends.'),
  counts: z.array(z.array(z.number())).describe('By column, then bin.'),
  incomplete: z.boolean(),
});

export const runSummaryQuerySchema = z.object({ ...scopeQuery, ...lensQuery });
export type RunSummaryQuery = z.infer<typeof runSummaryQuerySchema>;
const kpi = z.object({
  key: z.string(),
  label: z.string(),
  value: z.number().nullable(),
  denominator: z.number(),
  of: z.number(),
  low: z
    .number()
    .nullable()
    .describe('95 % interval, where there is one: Student-t on group means; of pass@k the group bootstrap of 1000 draws, seeded.'),
  high: z.number().nullable(),
  steps: z.number().describe('Number of included steps.'),
  note: z.string().nullable(),
});
export const advisorySchema = z.object({
  rule: z.string(),
  level: z.enum(['hint', 'warning']),
  text: z.string(),
  value: z.number().nullable(),
  threshold: z.number().nullable(),
  q: z.string().nullable().describe('Query for the rollouts behind it.'),
  step: z.number().optional().describe('The step that moved: `GET /v1/runs/{run}/moves?step=` explains it.'),
});
export const runSummarySchema = z.object({
  lens: z.enum(LENSES),
  den: z.enum(DENOMINATORS).nullable(),
  phase: z.enum(PHASES).nullable().describe('Default: the phase with the most rollouts.'),
  ...axis,
  windows: z
    .object({ from: z.number(), to: z.number(), count: z.number() })
    .nullable()
    .describe('If no step is known: the arrival windows that charts show instead; milliseconds since the epoch.'),
  steps: z.object({ from: z.number().nullable(), to: z.number().nullable(), count: z.number() }),
  rollouts: z.number(),
  scored: z.number().describe('Rollouts with a reward; the others were interrupted or have none.'),
  errors: z.number(),
  finished: z.number(),
  messages: z.number(),
  gaps: z.number().describe('Messages that were sent and did not arrive.'),
  groups: z.number(),
  group_size: z
    .object({ n: z.number(), groups: z.number().describe('Groups of this size.'), of: z.number() })
    .nullable()
    .describe('The most common number of rollouts in a group.'),
  incomplete_groups: z.number(),
  stops: z.record(z.string(), z.number()),
  success: z.object({ threshold: z.number(), strict: z.boolean() }).nullable().describe('Null: the environments have different rules.'),
  kpis: z.array(kpi),
  provenance: z
    .record(z.string(), z.record(provenance, z.number()))
    .describe('Rollouts by the weakest provenance of their step, for each field.'),
  lag_ms: z.number().nullable().describe('Age of the newest event in the figures.'),
  advisories: z.array(advisorySchema),
  incomplete: z.boolean(),
});

export type Advisory = z.infer<typeof advisorySchema>;
export type RunSeries = z.infer<typeof runSeriesSchema>;
export type RunHeatmap = z.infer<typeof runHeatmapSchema>;
export type RunSummary = z.infer<typeof runSummarySchema>;

export const runStepsQuerySchema = z.object({
  ...scopeQuery,
  max: z.coerce.number().int().min(1).max(5_000).default(2_000).describe('Maximum columns; neighbouring steps are merged.'),
});
export type RunStepsQuery = z.infer<typeof runStepsQuerySchema>;

const counts = z.array(z.number());
export const runStepsSchema = z.object({
  phase: z.enum(PHASES).nullable().describe('Default: the phase with the most rollouts.'),
  from: counts.describe('First step of each column; if no step is known, the start of its arrival window in milliseconds since the epoch.'),
  to: counts.describe('Last step of each column, or the end of its last window.'),
  rollouts: counts,
  scored: counts,
  errors: counts.describe('Rollouts that failed without fault of the policy.'),
  finished: counts,
  groups: counts,
  incomplete_groups: counts,
  gaps: counts.describe('Messages that were sent and did not arrive.'),
  stops: z.array(z.object({ stop: z.string(), counts })).describe('Why the rollouts of each column stopped, most frequent first.'),
});
export type RunSteps = z.infer<typeof runStepsSchema>;
