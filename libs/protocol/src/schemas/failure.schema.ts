import { z } from 'zod';
import { CALL_FAILURES, CAUSE_KINDS, STOP_REASONS } from '../vocabularies.ts';
import { scopeQuery } from './run-curves.schema.ts';

/** Why one rollout failed (docs/reference/failures.md). */
export const failureCauseSchema = z.object({
  fingerprint: z.string().describe('16 hexadecimal digits; `failure:<fingerprint>` finds all rollouts with this cause.'),
  class: z.enum(CALL_FAILURES).describe('Whose failure it is.'),
  kind: z.enum(CAUSE_KINDS),
  tool: z.string().nullable(),
  stop: z.enum(STOP_REASONS),
  error: z.string().nullable().describe('Its text without the parts that differ between rollouts; null: only the stop reason is known.'),
  text: z.string().nullable().describe('Its text as it was sent, one line.'),
  index: z.number().nullable().describe('Index of the message that shows it.'),
});
export type FailureCauseView = z.infer<typeof failureCauseSchema>;

export const failureQuerySchema = z.object({
  ...scopeQuery,
  limit: z.coerce.number().int().min(1).max(100).default(20).describe('Clusters.'),
});
export type FailureQuery = z.infer<typeof failureQuerySchema>;

export const failureListSchema = z.object({
  failures: z
    .array(
      failureCauseSchema.pick({ fingerprint: true, class: true, kind: true, tool: true, error: true }).extend({
        count: z.number().describe('Rollouts with this cause in these steps.'),
        solved: z.number().describe('Of them, those that succeeded nevertheless.'),
        first_step: z.number().nullable().describe('First of these steps with this cause.'),
        last_step: z.number().nullable(),
        first_seen_step: z.number().nullable().describe('First step with this cause in the whole run, also before these steps.'),
        mean_reward: z.number().nullable(),
        trend: z.array(z.number()).describe('Rollouts by bin of steps, as `bins`.'),
        example: z.object({
          id: z.string(),
          step: z.number().nullable(),
          stop: z.enum(STOP_REASONS),
          text: z.string().nullable(),
          index: z.number().nullable(),
        }),
        other_runs: z
          .array(z.object({ name: z.string(), count: z.number() }))
          .describe('Newest other runs of the organisation with this cause, and their rollouts with it, counted to 1 000.'),
      }),
    )
    .describe('Most rollouts that did not succeed first.'),
  kinds: z.number().describe('Causes in these steps; more than `failures` if there are more than `limit`.'),
  failed: z.number().describe('Rollouts with a cause: the sum of all counts.'),
  solved: z.number(),
  classes: z.object({ policy: z.number(), environment: z.number(), infrastructure: z.number() }).describe('The same by class.'),
  rollouts: z.number().describe('All rollouts in these steps.'),
  pending: z.number().describe('Rollouts whose cause is not derived yet; they are in no count.'),
  bins: z.array(z.object({ from: z.number(), to: z.number(), rollouts: z.number() })).describe('Bins of steps, at most 40.'),
});
export type FailureList = z.infer<typeof failureListSchema>;
