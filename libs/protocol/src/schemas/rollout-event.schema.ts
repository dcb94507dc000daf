import { z } from 'zod';
import { MESSAGE_TYPES } from '../vocabularies.ts';

/**
 * Events of `POST /v1/rollouts` (docs/reference/ors.md). Clients should send these shapes. The server accepts more (`libs/rollouts`,
 * `event-reader.ts`): it keeps unknown keys, and rejects a single bad event instead of its batch.
 */

const object = z.record(z.string(), z.unknown());
const timestamp = z.number().describe('Milliseconds since the epoch.');

export const rolloutStartEventSchema = z.object({
  eventType: z.literal('rollout'),
  eventId: z.uuid().describe('Id of the rollout.'),
  timestamp,
  runName: z.string(),
  step: z.number().optional().describe('Training step.'),
  environment: z.string().optional().describe('`owner/name`'),
  environment_id: z.string().optional(),
  variant_id: z.string().optional(),
  rolloutName: z.string().optional(),
  variant: z.string().optional(),
  split: z.string().optional(),
  metadata: object.optional(),
  task_spec: object.optional(),
  run_info: object.optional(),
  rollout_info: object.optional(),
});

export const rolloutMessageEventSchema = z.object({
  eventType: z.literal('message'),
  eventId: z.uuid(),
  timestamp,
  rolloutEventId: z.uuid().describe('`eventId` of the start event.'),
  index: z.number().describe('Position in the rollout, from 0.'),
  environment_id: z.string().optional(),
  type: z.enum(MESSAGE_TYPES),
  content: z.string().optional(),
  contentReference: z.string().optional(),
  summary: z.string().optional(),
  name: z.string().optional().describe('Name of the tool.'),
  callId: z.string().optional().describe('Joins a tool call and its result.'),
  reward: z.number().nullable().optional().describe('null when the client sent NaN or Infinity; the event is then flagged `nonfinite`.'),
  isFinished: z.boolean(),
  metadata: object,
});

export const rolloutUpdateEventSchema = z.object({
  eventType: z.literal('rollout_update'),
  eventId: z.uuid().describe('Id of the rollout.'),
  timestamp,
  rollout_info: object.describe('Merged into the `rollout_info` of the rollout.'),
});

export const rolloutEventSchema = z.discriminatedUnion('eventType', [
  rolloutStartEventSchema,
  rolloutMessageEventSchema,
  rolloutUpdateEventSchema,
]);

export type RolloutStartEvent = z.infer<typeof rolloutStartEventSchema>;
export type RolloutMessageEvent = z.infer<typeof rolloutMessageEventSchema>;
export type RolloutUpdateEvent = z.infer<typeof rolloutUpdateEventSchema>;
export type RolloutEvent = z.infer<typeof rolloutEventSchema>;
