import { z } from 'zod';
import { MESSAGE_TYPES, PHASES, PROVENANCES, ROLLOUT_SORTS, ROLLOUT_STATES, UNSCORED_FAILURES, VERIFICATIONS } from '../vocabularies.ts';
import { pageQuery } from './page.schema.ts';
import { rolloutEventSchema } from './rollout-event.schema.ts';

/** What the server did with one event of a batch. `conflict`: the event is stored with other content, which stays. */
const eventResultSchema = z.object({
  position: z.number(),
  event_id: z.string().nullable(),
  status: z.enum(['accepted', 'duplicate', 'conflict', 'rejected']),
  detail: z.string().optional(),
});
export type EventResult = z.infer<typeof eventResultSchema>;

export const ingestReceiptSchema = z.object({
  accepted: z.number().describe('Events stored now.'),
  duplicates: z.number().describe('Events that were stored before; they count as acknowledged.'),
  conflicts: z.number().describe('Duplicates that are stored with other content; the stored content stays.'),
  rejected: z
    .array(z.object({ position: z.number(), event_id: z.string().nullable(), detail: z.string() }))
    .describe('Rejected events with the reason.'),
  results: z.array(eventResultSchema).optional().describe('One for each sent event, in order; only with `Prefer: return=representation`.'),
});
export type IngestReceipt = z.infer<typeof ingestReceiptSchema>;

export const ingestBodySchema = z.object({
  events: z.array(rolloutEventSchema),
  history: z
    .boolean()
    .optional()
    .describe('The events are an import of old events: none of them counts as `late` (a timestamp over a minute before its arrival).'),
});

export const messagePageQuerySchema = z.object({
  from: z.coerce.number().int().min(0).max(2_147_483_647).default(0),
  limit: z.coerce.number().int().min(1).max(1000).default(200),
  bodies: z
    .enum(['full', 'preview'])
    .default('full')
    .describe('`preview`: bodies over 16 kB are cut to 512 characters and have `body_bytes`.'),
});

export const rolloutRowSchema = z.object({
  id: z.string(),
  rolloutName: z.string().nullable(),
  environment: z.string().nullable(),
  split: z.string().nullable(),
  variant: z.string().nullable(),
  task_index: z.number().nullable(),
  task: z.string().nullable().describe('Id of its task in this organisation; null without any.'),
  step: z.number().nullable(),
  policy_step: z.number().nullable(),
  group: z.string().nullable().describe('Key of its group: samples of one task at one step.'),
  sample: z.number().nullable(),
  phase: z.enum(PHASES),
  reward: z
    .number()
    .nullable()
    .describe('Sum of message rewards, else the reported total unless that is 0; null without either, and for an interrupted rollout.'),
  partial_reward: z
    .number()
    .nullable()
    .describe('What the steps of a rollout earned that the environment or the infrastructure interrupted. Not a reward of the policy.'),
  reward_reported: z.number().nullable().describe('Reported by the trainer.'),
  max_reward: z.number().nullable(),
  num_messages: z.number(),
  num_tool_calls: z.number(),
  num_errors: z.number().describe('Tool results that are errors.'),
  turns: z.number(),
  tokens: z.number().nullable().describe('Output tokens of the model; an estimate unless `provenance.tokens` is `reported`.'),
  tool_tokens: z.number().nullable().describe('Tokens of tool results; an estimate like `tokens`.'),
  bytes: z.number(),
  gaps: z.number().describe('Messages that were sent and did not arrive; 0 until the rollout was quiet for PALESTRA_GAP_GRACE_S.'),
  finished: z.boolean(),
  stop: z.string().nullable().describe('Why it ended: `finished` or another stop reason; null when unknown.'),
  failure_class: z
    .enum(UNSCORED_FAILURES)
    .nullable()
    .describe('Set if it failed without fault of its policy. It is then unscored, whatever rewards its messages have.'),
  flags: z.array(z.string()).describe('Anomalies: `reward_mismatch`, `stamped_turn`, `nonfinite`, ...'),
  provenance: z.record(z.string(), z.enum(PROVENANCES)).describe('How each field is known.'),
  verified: z.enum(VERIFICATIONS).nullable().describe('Whether its calls agree with the session ledger; null: not compared yet.'),
  latency_ms: z.number().nullable().describe('Sum of the tool latencies in the ledger; null if no session matches.'),
  source: z.string().nullable().describe('The integration that uploaded it.'),
  model: z.string().nullable(),
  session: z.string().nullable().describe('The session in which it ran.'),
  state: z.enum(ROLLOUT_STATES),
  created_at: z.string(),
  updated_at: z.string(),
});

export const rolloutMessageSchema = z.object({
  eventId: z.string(),
  index: z.number(),
  timestamp: z.number(),
  type: z.enum(MESSAGE_TYPES),
  content: z.string().nullable(),
  contentReference: z.string().nullable(),
  summary: z.string().nullable(),
  name: z.string().nullable(),
  callId: z.string().nullable(),
  reward: z.number().nullable(),
  isFinished: z.boolean(),
  metadata: z.record(z.string(), z.unknown()),
  nonfinite: z.boolean().optional().describe('The event of the client contained NaN, Infinity, or a reward beyond single precision.'),
  body_bytes: z
    .number()
    .optional()
    .describe('Only if `content` is cut: bytes of the whole body, which `/v1/rollouts/{id}/messages/{index}/body` returns.'),
});

export const rolloutViewSchema = rolloutRowSchema.extend({
  run: z.object({ id: z.string(), name: z.string(), org: z.string() }),
  metadata: z.record(z.string(), z.unknown()),
  task_spec: z.unknown(),
  run_info: z.record(z.string(), z.unknown()).nullable(),
  rollout_info: z.record(z.string(), z.unknown()).nullable(),
  rules: z.record(z.string(), z.string()).describe('The rule that determined each field of `provenance`.'),
  missing_indexes: z.array(z.number()).describe('Indexes that never arrived although later ones did.'),
  messages: z.array(rolloutMessageSchema),
});

export const messagePageSchema = z.object({ messages: z.array(rolloutMessageSchema), total: z.number() });

export type RolloutRow = z.infer<typeof rolloutRowSchema>;
export type RolloutMessageView = z.infer<typeof rolloutMessageSchema>;
export type RolloutView = z.infer<typeof rolloutViewSchema>;
export type MessagePage = z.infer<typeof messagePageSchema>;

export const rolloutListQuerySchema = z.object({
  ...pageQuery,
  sort: z.enum(ROLLOUT_SORTS).default('created_at'),
  order: z.enum(['asc', 'desc']).default('desc'),
  q: z.string().max(2_000).optional().describe('The query language of rollouts: docs/query.md.'),
});
export type RolloutListQuery = z.infer<typeof rolloutListQuerySchema>;

export const rolloutListSchema = z.object({
  rollouts: z.array(rolloutRowSchema),
  total: z.number().describe('Rollouts that match.'),
  total_is: z.enum(['exact', 'at_least']).describe('`at_least`: counting stopped at its limit.'),
  next: z.string().nullable().describe('For the next page; null: this is the last one.'),
  query: z.string().nullable().describe('The query in its canonical spelling; null without one.'),
});
export type RolloutList = z.infer<typeof rolloutListSchema>;

export const rolloutCountQuerySchema = rolloutListQuerySchema.pick({ q: true });
export const rolloutCountSchema = z.object({
  count: z.number().describe('Rollouts that match.'),
  count_is: z.enum(['exact', 'at_least']).describe('`at_least`: more than 100 000, or the time limit of a regex search passed.'),
  as_of: z.string().describe('Position of the last counted rollout in the order of arrival.'),
});
export type RolloutCount = z.infer<typeof rolloutCountSchema>;
