import { PHASES } from '@palestra/protocol';
import { z } from 'zod';
import { scopeQuery } from './run-curves.schema.ts';

export const stepsQuerySchema = z.object({
  ...scopeQuery,
  max: z.coerce.number().int().min(1).max(5_000).default(2_000).describe('Columns at most; neighbouring steps are added up.'),
});
export type StepsQuery = z.infer<typeof stepsQuerySchema>;

const counts = z.array(z.number());
export const stepsSchema = z.object({
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
