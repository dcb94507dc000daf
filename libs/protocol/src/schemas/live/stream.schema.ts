import { z } from 'zod';
import { ROLLOUT_STATES, type StreamEvent } from '../../vocabularies.ts';
import { advisorySchema } from '../run-curves.schema.ts';

/** Data of the events of `GET /v1/stream`. `v` is the version of a run’s figures: a decimal number as text. */

const v = z.string();

export const streamRunSchema = z.object({
  id: z.string(),
  v,
  steps: z
    .array(z.number())
    .nullable()
    .optional()
    .describe('Steps whose figures changed, -1 for no known step; null: too many to list; absent: new messages only.'),
});
export const streamCountersSchema = z.object({
  rollouts: z.number(),
  messages: z.number(),
  live: z.number().describe('Unfinished rollouts with a message in the last ten seconds, among the newest thousand.'),
  lag_ms: z.number().nullable().describe('Age of the newest event in the figures; null without one.'),
  v,
});
export const streamDirtySchema = z.object({
  steps: z.array(z.number()).nullable().describe('Steps whose figures changed; null: too many to list.'),
  groups: z.null().describe('Any group of these steps.'),
  v,
});
export const streamResetSchema = z.object({ v });
export const streamAdvisorySchema = z.object({ advisories: z.array(advisorySchema).describe('All that hold now.'), v });
export const streamRolloutSchema = z.object({ id: z.string(), msgs: z.number(), state: z.enum(ROLLOUT_STATES) });

const streamSchemas = {
  run: streamRunSchema,
  counters: streamCountersSchema,
  dirty: streamDirtySchema,
  reset: streamResetSchema,
  advisory: streamAdvisorySchema,
  rollout: streamRolloutSchema,
} satisfies Record<StreamEvent, z.ZodType>;

export type StreamData = { [E in StreamEvent]: z.infer<(typeof streamSchemas)[E]> };
export type StreamCounters = StreamData['counters'];
export type StreamAdvisories = StreamData['advisory'];
export type StreamRollout = StreamData['rollout'];
/** An event of the stream with its parsed data. */
export type StreamMessage = { [E in StreamEvent]: { event: E; data: StreamData[E] } }[StreamEvent];
