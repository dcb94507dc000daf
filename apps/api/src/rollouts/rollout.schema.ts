import { z } from 'zod';

export const receiptSchema = z.object({
  accepted: z.number().describe('Events stored now.'),
  duplicates: z.number().describe('Events that were stored before; they count as acknowledged.'),
  conflicts: z.number().describe('Of the duplicates those that were stored with other content, which stays.'),
  rejected: z
    .array(z.object({ position: z.number(), event_id: z.string().nullable(), detail: z.string() }))
    .describe('Events not kept, and why.'),
  results: z
    .array(
      z.object({
        position: z.number(),
        event_id: z.string().nullable(),
        status: z.enum(['accepted', 'duplicate', 'conflict', 'rejected']),
        detail: z.string().optional(),
      }),
    )
    .optional()
    .describe('One a sent event, in their order; only with `Prefer: return=representation`.'),
});

export const ingestBodySchema = z.object({
  events: z.array(z.looseObject({ eventType: z.enum(['rollout', 'message', 'rollout_update']), eventId: z.uuid() })),
  history: z
    .boolean()
    .optional()
    .describe(
      'The events were recorded before and are imported now: none of them counts as `late` (stamped over a minute before it came).',
    ),
});

export const messagePageQuerySchema = z.object({
  from: z.coerce.number().int().min(0).max(2_147_483_647).default(0),
  limit: z.coerce.number().int().min(1).max(1000).default(200),
  bodies: z.enum(['full', 'preview']).default('full').describe('preview: bodies over 16 kB are cut to 512 characters, with `body_bytes`.'),
});

export const rolloutRowSchema = z.object({
  id: z.string(),
  rolloutName: z.string().nullable(),
  environment: z.string().nullable(),
  split: z.string().nullable(),
  variant: z.string().nullable(),
  task_index: z.number().nullable(),
  task: z.string().nullable().describe('Id of its task in this organisation.'),
  step: z.number().nullable(),
  policy_step: z.number().nullable(),
  group: z.string().nullable().describe('Key of its group: samples of one task at one step.'),
  sample: z.number().nullable(),
  phase: z.enum(['train', 'eval', 'unknown']),
  reward: z
    .number()
    .nullable()
    .describe('Sum of message rewards, else the reported total unless that is 0; null without either, and for a failed rollout.'),
  reward_reported: z.number().nullable(),
  max_reward: z.number().nullable(),
  num_messages: z.number(),
  num_tool_calls: z.number(),
  num_errors: z.number().describe('Tool results that are errors.'),
  turns: z.number(),
  tokens: z.number().nullable().describe('Of the model; an estimate unless provenance.tokens is reported.'),
  tool_tokens: z.number().nullable(),
  bytes: z.number(),
  gaps: z
    .number()
    .describe('Messages that must have been sent and did not come; 0 until nothing of the rollout came for PALESTRA_GAP_GRACE_S.'),
  finished: z.boolean(),
  stop: z.string().nullable(),
  failure_class: z
    .enum(['environment', 'infrastructure'])
    .nullable()
    .describe('Set when it failed by no fault of its policy: it is unscored then, whatever rewards its messages have.'),
  flags: z.array(z.string()),
  provenance: z.record(z.string(), z.enum(['unknown', 'inferred', 'parsed', 'reported'])).describe('How each field came to be known.'),
  verified: z.enum(['unverified', 'partial', 'verified']).nullable().describe('Whether its calls are those of our session ledger.'),
  latency_ms: z.number().nullable().describe('Sum of true tool latencies, from the ledger.'),
  source: z.string().nullable(),
  model: z.string().nullable(),
  session: z.string().nullable(),
  state: z.enum(['live', 'complete', 'stale', 'empty']),
  created_at: z.string(),
  updated_at: z.string(),
});

export const messageViewSchema = z.object({
  eventId: z.string(),
  index: z.number(),
  timestamp: z.number(),
  type: z.string(),
  content: z.string().nullable(),
  contentReference: z.string().nullable(),
  summary: z.string().nullable(),
  name: z.string().nullable(),
  callId: z.string().nullable(),
  reward: z.number().nullable(),
  isFinished: z.boolean(),
  metadata: z.record(z.string(), z.unknown()),
  nonfinite: z.boolean().optional(),
  body_bytes: z.number().optional().describe('Only when `content` is cut: bytes of the whole body.'),
});

export const rolloutViewSchema = rolloutRowSchema.extend({
  run: z.object({ id: z.string(), name: z.string(), org: z.string() }),
  metadata: z.record(z.string(), z.unknown()),
  task_spec: z.unknown(),
  run_info: z.record(z.string(), z.unknown()).nullable(),
  rollout_info: z.record(z.string(), z.unknown()).nullable(),
  rules: z.record(z.string(), z.string()).describe('By which rule each field of `provenance` was found.'),
  missing_indexes: z.array(z.number()),
  messages: z.array(messageViewSchema),
});

export const deletedSchema = z.object({ deleted: z.literal(true) });
