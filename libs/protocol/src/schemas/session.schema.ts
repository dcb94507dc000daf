import { z } from 'zod';
import type { OutputBlock } from '../episode.schema.ts';
import { CALL_STATES, FAILURE_CLASSES, SESSION_STATES } from '../vocabularies.ts';

/** Queries, bodies and answers of `/v1/sessions`. Times are ISO 8601, durations name their unit. */

/** PostgreSQL's text cannot contain NUL. */
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
  cursor: text().optional().describe('`next_cursor` of the previous page.'),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});
export type SessionListQuery = z.output<typeof sessionListQuerySchema>;

export const sessionCallListQuerySchema = z.object({
  after: z.coerce.number().int().min(0).default(0).describe('`seq` of the last call of the previous page.'),
  limit: z.coerce.number().int().min(1).max(200).default(100),
});
export type SessionCallListQuery = z.output<typeof sessionCallListQuerySchema>;

export const sessionEventsQuerySchema = z.object({
  after: z.coerce.number().int().min(0).optional().describe('Start with the calls after this `seq`; absent: with the calls that run now.'),
});
export type SessionEventsQuery = z.output<typeof sessionEventsQuerySchema>;

const runSchema = z
  .strictObject({
    name: text(1_000).describe('Name of the run.'),
    rollout: text(1_000).nullish().describe('Name of the rollout.'),
    step: z.int().nullish(),
    split: text().nullish(),
    task_index: z.int().nullish(),
    metadata: z.record(z.string(), z.unknown()).nullish(),
  })
  .describe('The session is recorded as a rollout of this run.');

const secretSchema = z.union([z.string(), z.strictObject({ value: z.string(), allowed_domains: z.array(z.string()).optional() })], {
  error: 'a secret is a string, or {value, allowed_domains}',
});

export const openSessionSchema = z
  .strictObject({
    environment: text().describe('`owner/name`, `owner/name@3`, or the name only for an environment of the own organisation.'),
    variant: text().nullish(),
    task_spec: z.unknown().optional().describe('The task by value; else name `split` and `index`.'),
    split: text().optional(),
    index: z.int().optional(),
    toolset_name: text().nullish(),
    secrets: z
      .record(z.string(), secretSchema)
      .nullish()
      .describe('Sent to the environment only, encrypted at rest, erased at the end of the session.'),
    run: runSchema.nullish(),
    sid: text(200).optional().describe('Set by a client that wants to repeat the request if its answer is lost.'),
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
  at_call: z.int().min(0).nullish().describe('Number of calls to replay; absent: all that have ended.'),
  run: runSchema.nullish(),
});
export type ForkSession = z.output<typeof forkSessionSchema>;
export type SessionRun = z.output<typeof runSchema>;

export const sessionHolderSchema = z.object({
  user: z.string().nullable(),
  key: z.object({ id: z.string(), name: z.string(), prefix: z.string() }).nullable().describe('null for a browser session.'),
});
const failureClass = z.enum(FAILURE_CLASSES).nullable();
export const lastCallSchema = z.object({
  tool: z.string(),
  started_at: z.string(),
  state: z.enum(CALL_STATES).describe('`running`, or how it ended.'),
  failure_class: failureClass,
});

const rowShape = {
  sid: z.string(),
  state: z.enum(SESSION_STATES),
  live: z.boolean().describe('The session has not ended and may hold a slot.'),
  environment: z.string().nullable().describe('`owner/name`; null until the session is bound to one.'),
  environment_version: z.number().nullable().describe('Number of the version of the environment; also null when that was deleted.'),
  variant: z.string().nullable(),
  owner_replica: z.string().nullable().describe('The API process that owns its connection; null if any process can serve it.'),
  holder: sessionHolderSchema,
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
    .nullable()
    .describe('The run that the session is written to as a rollout.'),
  uploaded: z
    .object({ run: z.string(), rollout_id: z.string() })
    .nullable()
    .describe('An uploaded rollout that names the session or was matched with it, unless the session is recorded.'),
  forked_from: z.object({ sid: z.string(), at_call: z.number() }).nullable(),
  queue: z
    .object({ queued_at: z.string().nullable(), waiting: z.boolean(), admitted_at: z.string().nullable() })
    .nullable()
    .describe('How it got its slot; null if it never requested one.'),
  num_calls: z.number(),
  last_call: lastCallSchema.nullable(),
};
const sessionRowSchema = z.object(rowShape);
export const sessionListSchema = z.object({
  sessions: z.array(sessionRowSchema),
  next_cursor: z.string().nullable(),
});

const count = z.number();
export const sessionViewSchema = z.object({
  ...rowShape,
  task: z.record(z.string(), z.unknown()).nullable().describe('The requested task, secrets hidden; null while reserved.'),
  deterministic: z.boolean().describe('Its environment is declared deterministic: the session survives its process and can be forked.'),
  calls: z.object({ total: count, running: count, ok: count, policy: count, environment: count, infrastructure: count }),
  total_reward: z.number().nullable().describe('Sum over `ok` calls that were scored; null (never 0) without any.'),
});

export const sessionStateSchema = z.object({
  source: z
    .enum(['environment', 'ledger'])
    .describe('`environment`: the `state` of its OpenEnv server; `ledger`: the state that this service knows.'),
  state: z.record(z.string(), z.unknown()).describe('`episode_id`, `step_count`, and the fields of the environment.'),
});

export const sessionCallSchema = z.object({
  task_id: z.string(),
  seq: z.number().describe('Increases with every call of a session.'),
  kind: z.enum(['call', 'score_group']),
  tool: z.string(),
  at_call: z
    .number()
    .nullable()
    .describe('`at_call` of a fork that replays the calls up to this one; null for a call that a replay leaves out.'),
  input: z.string().describe('JSON text as sent, secrets hidden; cut when `truncated`.'),
  input_bytes: z.number(),
  state: z.enum(CALL_STATES),
  text: z
    .string()
    .nullable()
    .describe('Text of the tool, or how it failed; the beginning of the stored JSON when `truncated`; null while it runs.'),
  blocks: z
    .array(z.looseObject({}) as unknown as z.ZodType<OutputBlock>)
    .nullable()
    .describe('Output of the tool; null for failures and when `truncated`.'),
  result_bytes: z.number().nullable(),
  code: z.string().nullable().describe('Code of the error catalogue, of a refused call.'),
  ok: z.boolean().nullable(),
  reason: z.string().nullable(),
  reward: z.number().nullable().describe('null (never 0) unless the call was scored.'),
  finished: z.boolean(),
  failure_class: failureClass,
  started_at: z.string(),
  ended_at: z.string().nullable(),
  latency_ms: z.number().nullable(),
  undelivered: z.boolean().describe('The stream of the call broke, and the client has not fetched the result yet.'),
  truncated: z.boolean().describe('Input or result exceeds 64 kB and is cut here; the route of the single call returns all of it.'),
});
export const sessionCallListSchema = z.object({ calls: z.array(sessionCallSchema), next_after: z.number().nullable() });

export const sessionForkSchema = z.object({ sid: z.string(), forked_from: z.string(), at_call: z.number() });

/** As a client sends it. */
export type OpenSessionBody = z.input<typeof openSessionSchema>;
export type SessionHolder = z.infer<typeof sessionHolderSchema>;
export type SessionLastCall = z.infer<typeof lastCallSchema>;
export type SessionRow = z.infer<typeof sessionRowSchema>;
export type SessionRecordingView = NonNullable<SessionRow['recording']>;
export type SessionList = z.infer<typeof sessionListSchema>;
export type SessionView = z.infer<typeof sessionViewSchema>;
export type SessionStateView = z.infer<typeof sessionStateSchema>;
export type SessionCallView = z.infer<typeof sessionCallSchema>;
export type SessionCallList = z.infer<typeof sessionCallListSchema>;
export type SessionForkView = z.infer<typeof sessionForkSchema>;

const name = z
  .string()
  .trim()
  .min(1)
  .max(1_000)
  .refine((value) => !value.includes('\0'), { error: 'must not hold NUL characters' });

export const keepSessionSchema = z.strictObject({
  run: name.default('playground').describe('Name of the run, which is created if it does not exist.'),
  rollout: name.nullish().describe('Name of the rollout.'),
});
export type KeepSession = z.output<typeof keepSessionSchema>;

export const keptSessionSchema = z.object({
  sid: z.string(),
  run: z.string().describe('The run of the first request, also if a repeated request names another one.'),
  rollout_id: z.string(),
  rollout: z.string().nullable(),
});
export type KeptSession = z.output<typeof keptSessionSchema>;
/** As a client sends it. */
export type KeepSessionBody = z.input<typeof keepSessionSchema>;
