import {
  CALL_STATES,
  FAILURE_CLASSES,
  type OutputBlock,
  SESSION_STATES,
  type SessionCallList,
  type SessionCallView,
  type SessionForkView,
  type SessionList,
  type SessionStateView,
  type SessionView,
} from '@palestra/protocol';
import { z } from 'zod';

/** Queries, bodies and answers of `/v1/sessions`. Answers are typed by the protocol's views, so that neither drifts from the other. */

/** PostgreSQL's text holds no NUL. */
const text = (max = 500) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((value) => !value.includes('\0'), { error: 'must not hold NUL characters' });
const stateFilters = ['live', 'ended', ...SESSION_STATES] as const;

export const sessionListQuerySchema = z.object({
  state: z
    .string()
    .transform((value) => value.split(',').map((name) => name.trim()))
    .pipe(z.array(z.enum(stateFilters, { error: `state must be of ${stateFilters.join(', ')}` })).min(1))
    .optional()
    .describe('States, comma-separated; `live` stands for all that have not ended, `ended` for the others.'),
  environment: text().optional().describe('`owner/name`'),
  run: text().optional().describe('Name of the run that the sessions are recorded to.'),
  key_id: text().optional(),
  failure_class: z.enum(FAILURE_CLASSES).optional(),
  forked_from: text().optional().describe('SID of the session that they continue.'),
  cursor: text().optional().describe('`next_cursor` of the page before.'),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});
export type SessionListQuery = z.output<typeof sessionListQuerySchema>;

export const callListQuerySchema = z.object({
  after: z.coerce.number().int().min(0).default(0).describe('`seq` of the last call of the page before.'),
  limit: z.coerce.number().int().min(1).max(200).default(100),
});
export type CallListQuery = z.output<typeof callListQuerySchema>;

export const eventsQuerySchema = z.object({
  after: z.coerce.number().int().min(0).optional().describe('Begin with the calls after this `seq`; absent: with those that run now.'),
});
export type EventsQuery = z.output<typeof eventsQuerySchema>;

const runSchema = z
  .strictObject({
    name: text(1_000).describe('Name of the run.'),
    rollout: text(1_000).nullish().describe('Name of the rollout.'),
    step: z.int().nullish(),
    split: text().nullish(),
    task_index: z.int().nullish(),
    metadata: z.record(z.string(), z.unknown()).nullish(),
  })
  .describe('The session is itself written as a rollout of this run.');

const secretSchema = z.union([z.string(), z.strictObject({ value: z.string(), allowed_domains: z.array(z.string()).optional() })], {
  error: 'a secret is a string, or {value, allowed_domains}',
});

export const openSessionSchema = z
  .strictObject({
    environment: text().describe('`owner/name`, `owner/name@3`, or a bare name of your own.'),
    variant: text().nullish(),
    task_spec: z.unknown().optional().describe('The task by value; else name `split` and `index`.'),
    split: text().optional(),
    index: z.int().optional(),
    toolset_name: text().nullish(),
    secrets: z.record(z.string(), secretSchema).nullish().describe('Given to the environment only, encrypted at rest, erased at the end.'),
    run: runSchema.nullish(),
    sid: text(200).optional().describe('Chosen by a client that wants to repeat the request when its answer is lost.'),
  })
  .refine(
    (body) =>
      'task_spec' in body ? body.split === undefined && body.index === undefined : body.split !== undefined && body.index !== undefined,
    {
      error: 'name the task: either task_spec, or split and index',
      path: ['task_spec'],
    },
  );
export type OpenSession = z.output<typeof openSessionSchema>;

export const forkSessionSchema = z.strictObject({
  at_call: z.int().min(0).nullish().describe('How many calls to begin with; absent = all that have ended.'),
  run: runSchema.nullish(),
});
export type ForkSession = z.output<typeof forkSessionSchema>;
export type SessionRun = z.output<typeof runSchema>;

export const holderSchema = z.object({
  user: z.string().nullable(),
  key: z.object({ id: z.string(), name: z.string(), prefix: z.string() }).nullable().describe('null for a browser session.'),
});
const failureClass = z.enum(FAILURE_CLASSES).nullable();
export const lastCallSchema = z.object({
  tool: z.string(),
  started_at: z.string(),
  state: z.enum(CALL_STATES),
  failure_class: failureClass,
});

const rowShape = {
  sid: z.string(),
  state: z.enum(SESSION_STATES),
  live: z.boolean(),
  environment: z.string().nullable(),
  environment_version: z.number().nullable(),
  variant: z.string().nullable(),
  owner_replica: z.string().nullable(),
  holder: holderSchema,
  created_at: z.string(),
  last_seen_at: z.string().describe('Last ping or request.'),
  last_request_at: z.string().describe('Last request other than a ping.'),
  expires_at: z.string().nullable().describe('When it ends without further activity; null once ended.'),
  ended_at: z.string().nullable(),
  heartbeat_timeout_s: z.number(),
  idle_timeout_s: z.number(),
  failure: z.object({ code: z.string(), detail: z.string() }).nullable(),
  failure_class: failureClass,
  recording: z
    .object({
      run: z.string(),
      rollout_id: z.string(),
      name: z.string().nullable(),
      step: z.number().nullable(),
      split: z.string().nullable(),
      task_index: z.number().nullable(),
      metadata: z.record(z.string(), z.unknown()).nullable(),
    })
    .nullable(),
  forked_from: z.object({ sid: z.string(), at_call: z.number() }).nullable(),
  queue: z
    .object({ queued_at: z.string().nullable(), waiting: z.boolean(), admitted_at: z.string().nullable() })
    .nullable()
    .describe('How it came by its slot.'),
  num_calls: z.number(),
  last_call: lastCallSchema.nullable(),
};
const sessionRowSchema = z.object(rowShape);
export const sessionListSchema: z.ZodType<SessionList> = z.object({
  sessions: z.array(sessionRowSchema),
  next_cursor: z.string().nullable(),
});

const count = z.number();
export const sessionViewSchema: z.ZodType<SessionView> = z.object({
  ...rowShape,
  task: z.record(z.string(), z.unknown()).nullable().describe('What was asked for, secrets hidden.'),
  deterministic: z.boolean().describe('It outlives its process and can be forked.'),
  calls: z.object({ total: count, running: count, ok: count, policy: count, environment: count, infrastructure: count }),
  total_reward: z.number().nullable().describe('Sum over `ok` calls that were scored; null (never 0) without any.'),
});

export const sessionStateSchema: z.ZodType<SessionStateView> = z.object({
  source: z.enum(['environment', 'ledger']),
  state: z.record(z.string(), z.unknown()).describe('`episode_id` and `step_count`, and whatever the environment adds.'),
});

export const callViewSchema: z.ZodType<SessionCallView> = z.object({
  task_id: z.string(),
  seq: z.number(),
  kind: z.enum(['call', 'score_group']),
  tool: z.string(),
  at_call: z.number().nullable().describe('`at_call` of a fork that begins with the calls up to this one.'),
  input: z.string().describe('JSON text as sent, secrets hidden.'),
  input_bytes: z.number(),
  state: z.enum(CALL_STATES),
  text: z.string().nullable(),
  blocks: z.array(z.looseObject({}) as unknown as z.ZodType<OutputBlock>).nullable(),
  result_bytes: z.number().nullable(),
  code: z.string().nullable(),
  ok: z.boolean().nullable(),
  reason: z.string().nullable(),
  reward: z.number().nullable().describe('null (never 0) unless the call was scored.'),
  finished: z.boolean(),
  failure_class: failureClass,
  started_at: z.string(),
  ended_at: z.string().nullable(),
  latency_ms: z.number().nullable(),
  undelivered: z.boolean().describe('Its stream broke, and its client has not come back yet.'),
  truncated: z.boolean().describe('Input or result is longer than 64 kB here; the route of the one call has the whole.'),
});
export const callListSchema: z.ZodType<SessionCallList> = z.object({ calls: z.array(callViewSchema), next_after: z.number().nullable() });

export const sessionForkSchema: z.ZodType<SessionForkView> = z.object({ sid: z.string(), forked_from: z.string(), at_call: z.number() });
