import { AXES, DENOMINATORS, LENSES, PHASES, PROVENANCES } from '../vocabularies.ts';
import { z } from 'zod';

const provenance = z.enum(PROVENANCES);
/** `40..80`, `40..`, `..80` or `40`. */
const stepRange = z
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
    .describe('Whose definitions; names of another lens are taken, too, and the answer says whose they are.'),
  den: z.enum(DENOMINATORS).default('scored').describe('What canonical figures count; trainers have their own rule.'),
};

export const runSeriesQuerySchema = z.object({
  ...scopeQuery,
  ...lensQuery,
  m: z
    .union([z.string().transform((one) => [one]), z.array(z.string())])
    .pipe(z.array(z.string().min(1).max(200)).min(1).max(20))
    .default(['reward_mean'])
    .describe('Metrics, repeated: our ids or the names that trainers print; `pass@{k}` stands for every k.'),
  x: z
    .enum(AXES)
    .default('step')
    .describe(
      'window: by moment of arrival, of rollouts whose step is not known; also what `step` is answered with where no step is known. time: milliseconds since the epoch, when the first rollout of the step came. count: rollouts up to and with the step.',
    ),
  by: z.enum(['env']).optional().describe('One series an environment.'),
  max: z.coerce.number().int().min(4).max(10_000).default(2_000).describe('Points a series at most; extremes are kept.'),
});
export type RunSeriesQuery = z.infer<typeof runSeriesQuerySchema>;

/** The actual axis of the points or columns, which may differ from the requested one. */
const axis = {
  axis: z
    .enum(AXES)
    .describe('What `x` is: `window` where no step is known, its values are then the beginnings, in milliseconds since the epoch.'),
  axis_label: z.string().describe('In words: `arrival window of 5 min`.'),
  window_ms: z.number().nullable().describe('Width of a window of arrival; null: points are steps.'),
};

export const runSeriesSchema = z.object({
  x: z.enum(AXES).describe('As asked.'),
  ...axis,
  series: z.array(
    z.object({
      m: z.string().describe('As asked.'),
      key: z.string(),
      lens: z.enum(LENSES),
      den: z.enum(DENOMINATORS).nullable().describe('Null: the trainer’s own rule.'),
      label: z.string(),
      formula: z.string(),
      phase: z.enum(PHASES),
      env: z.string().nullable(),
      ...axis,
      step: z.array(z.number()).describe('Of windows of arrival their number from 0, which is no step: no query finds it.'),
      x: z.array(z.number().nullable()),
      value: z
        .array(z.number().nullable())
        .describe('Null: there was nothing to compute it from, or the upload does not hold it (`unavailable`).'),
      denominator: z.array(z.number()).describe('How many rollouts, groups or results went in.'),
      of: z.array(z.number()).describe('Of how many that were there.'),
      provenance: z.array(provenance).describe('The weakest of what went in, the step among it.'),
      incomplete_groups: z.array(z.number()).describe('Groups of the step that still wait for rollouts: drawn hollow.'),
      notes: z.array(z.object({ at: z.number(), note: z.string() })),
      unavailable: z.boolean().describe('The upload does not hold what this metric needs, at no step.'),
    }),
  ),
  unknown_step: z.number().describe('Rollouts whose step is not known: in no series of steps.'),
  incomplete: z.boolean().describe('Some figures are still being made: ask again.'),
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
  max: z.coerce.number().int().min(1).max(2_000).default(1_000).describe('Columns at most; neighbouring steps are added up.'),
});
export type RunHeatmapQuery = z.infer<typeof runHeatmapQuerySchema>;
export const runHeatmapSchema = z.object({
  ...axis,
  y: z.enum(['reward', 'turns', 'tokens']),
  phase: z.enum(PHASES).nullable(),
  edges: z.array(z.number()).describe('bins + 1 edges; a bin holds the edge that is away from zero.'),
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
  steps: z.number().describe('Steps that went in.'),
  note: z.string().nullable(),
});
export const advisorySchema = z.object({
  rule: z.string(),
  level: z.enum(['hint', 'warning']),
  text: z.string(),
  value: z.number().nullable(),
  threshold: z.number().nullable(),
  q: z.string().nullable().describe('The rollouts behind it, as a query.'),
});
export const runSummarySchema = z.object({
  lens: z.enum(LENSES),
  den: z.enum(DENOMINATORS).nullable(),
  phase: z.enum(PHASES).nullable().describe('Unless asked for, the phase with the most rollouts.'),
  ...axis,
  windows: z
    .object({ from: z.number(), to: z.number(), count: z.number() })
    .nullable()
    .describe('Where no step is known: the windows of arrival that charts have instead; milliseconds since the epoch.'),
  steps: z.object({ from: z.number().nullable(), to: z.number().nullable(), count: z.number() }),
  rollouts: z.number(),
  scored: z.number(),
  errors: z.number(),
  finished: z.number(),
  messages: z.number(),
  gaps: z.number().describe('Messages that must have been sent and are not here.'),
  groups: z.number(),
  incomplete_groups: z.number(),
  stops: z.record(z.string(), z.number()),
  success: z.object({ threshold: z.number(), strict: z.boolean() }).nullable().describe('Null: environments differ.'),
  kpis: z.array(kpi),
  provenance: z.record(z.string(), z.record(provenance, z.number())).describe('Rollouts by the weakest provenance of their step, a field.'),
  lag_ms: z.number().nullable().describe('Since the newest event that is in the figures.'),
  advisories: z.array(advisorySchema),
  incomplete: z.boolean(),
});

export type Advisory = z.infer<typeof advisorySchema>;
export type RunSeries = z.infer<typeof runSeriesSchema>;
export type RunHeatmap = z.infer<typeof runHeatmapSchema>;
export type RunSummary = z.infer<typeof runSummarySchema>;

export const runStepsQuerySchema = z.object({
  ...scopeQuery,
  max: z.coerce.number().int().min(1).max(5_000).default(2_000).describe('Columns at most; neighbouring steps are added up.'),
});
export type RunStepsQuery = z.infer<typeof runStepsQuerySchema>;

const counts = z.array(z.number());
export const runStepsSchema = z.object({
  phase: z.enum(PHASES).nullable().describe('Unless asked for, the phase with the most rollouts.'),
  from: counts.describe(
    'First step of each column; where no step is known, when its window of arrival begins, milliseconds since the epoch.',
  ),
  to: counts.describe('Last step of each column, or when its last window ends.'),
  rollouts: counts,
  scored: counts,
  errors: counts.describe('Rollouts that failed by no fault of the policy.'),
  finished: counts,
  groups: counts,
  incomplete_groups: counts,
  gaps: counts.describe('Messages that must have been sent and are not here.'),
  stops: z.array(z.object({ stop: z.string(), counts })).describe('Why the rollouts of each column stopped, most frequent first.'),
});
export type RunSteps = z.infer<typeof runStepsSchema>;
