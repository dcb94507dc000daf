import { type OrsRoute, orsRoutes } from '@palestra/ors/server';
import { CALL_FAILURES, type ErrorCode, SPLIT_TYPES } from '@palestra/protocol';
import { z } from 'zod';
import { runSchema } from '../../environments/hosting/sandboxes/sandbox-run.ts';
import { createSandboxSchema, networkPolicySchema } from '../../environments/hosting/sandboxes/sandbox-settings.ts';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';

/** The ORS routes of the OpenAPI document. libs/ors checks the bodies, with the same rules and the SDK's error texts. */

const anyObject = z.record(z.string(), z.unknown());
const split = z.object({ split: z.string() });
const block = z.looseObject({ type: z.string() });
const tools = z.looseObject({
  tools: z.array(z.object({ name: z.string(), description: z.string(), input_schema: anyObject.nullable() })),
});
const sid = z.object({ sid: z.string() });

/** Request headers. Text in `describe` is in the document. */
const failureHeader = {
  'x-palestra-failure': z
    .string()
    .optional()
    .describe('Any value: a stream that fails ends with the event `failure`, which has a code, in place of `error`.'),
};
const reservation = z.object({
  'x-deployment': z.string().optional().describe('`owner/name` of the environment.'),
  'x-secrets': z.string().optional().describe('Base64 of JSON. With it the request waits for a slot.'),
  'x-palestra-queue': z.string().optional().describe('Any value: the request waits for a slot, and events `queue` report its position.'),
  ...failureHeader,
});
const callHeaders = z.object({
  'x-session-id': z.string(),
  'idempotency-key': z.string().optional().describe('A new id of 16 to 128 characters. Requests with the same one are one call.'),
  ...failureHeader,
});

/** Data of the events of a stream. */
const failure = z.object({
  code: z.string().nullable().describe('Of the error catalogue; null: the tool raised an error.'),
  status: z.int(),
  failure_class: z.enum(CALL_FAILURES),
  retryable: z.boolean(),
  detail: z.string(),
});
const position = z.object({
  position: z.int().min(1).describe('1 is the next one.'),
  waiting: z.int().describe('Number of waiting sessions.'),
  estimated_wait_s: z.int().nullable().describe('Seconds; null while there is no estimate.'),
});
const reservationEvents = {
  task_id: z.string().describe('The session id.'),
  queue: position,
  end: z.string().describe('Empty: the session has a slot.'),
  error: z.string(),
  failure,
};
const sandboxEvents = {
  task_id: z.string().describe('The session id.'),
  end: z.string().describe('Empty: commands can run.'),
  error: z.string(),
  failure,
};
const callEvents = {
  task_id: z.string().describe('The id with which the call can be resumed.'),
  chunk: z.string().describe('A piece of the JSON text of the result.'),
  end: z.string().describe('The last piece of the JSON text of the result.'),
  error: z.string(),
  failure,
};

interface Entry {
  summary: string;
  body?: z.ZodType;
  response?: z.ZodType;
  errors?: ErrorCode[];
  stream?: Record<string, z.ZodType>;
  headers?: z.ZodObject;
}

/** Why a session has ended. */
const ENDED: ErrorCode[] = ['session_deleted', 'session_expired', 'session_lost', 'session_diverged'];
const SESSION: ErrorCode[] = [
  'session_id_required',
  'session_not_found',
  'session_moved',
  'setup_failed',
  'setup_timeout',
  'environment_failed',
  ...ENDED,
];
const SANDBOX: ErrorCode[] = [
  'session_id_required',
  'session_not_found',
  'invalid_request',
  'backend_unreachable',
  'backend_timeout',
  ...ENDED,
];
const LOOKUP: ErrorCode[] = ['deployment_not_found', 'unknown_variant', 'backend_unreachable', 'backend_timeout', 'backend_invalid'];

const entries: Record<OrsRoute['operation'], Entry> = {
  health: { summary: 'Liveness', response: z.object({ status: z.literal('ok') }) },
  serverVersion: {
    summary: 'Version of this server',
    response: z.object({
      version: z.string().describe('Version of the reference server whose behaviour this server has, "+palestra.", version of the service'),
      build_sha: z.string().nullable(),
    }),
  },
  listEnvironments: { summary: 'Names of the variants, the first is the default', response: z.array(z.string()), errors: LOOKUP },
  tools: { summary: 'Tools that every task has', response: tools, errors: LOOKUP },
  splits: {
    summary: 'Splits',
    response: z.array(z.object({ name: z.string(), type: z.enum(SPLIT_TYPES) })),
    errors: LOOKUP,
  },
  tasks: {
    summary: 'Every task of a split',
    body: split,
    response: z.object({ tasks: z.array(z.unknown()), env_name: z.string() }),
    errors: [...LOOKUP, 'invalid_split', 'tasks_not_listable'],
  },
  numTasks: {
    summary: 'Number of tasks of a split',
    body: split,
    response: z.object({ num_tasks: z.number() }),
    errors: [...LOOKUP, 'invalid_split'],
  },
  task: {
    summary: 'One task by its index',
    body: split.extend({ index: z.number() }),
    response: z.object({ task: z.unknown(), env_name: z.string() }),
    errors: [...LOOKUP, 'invalid_split', 'invalid_index'],
  },
  taskRange: {
    summary: 'Tasks of a range of indexes',
    body: split.extend({ start: z.number().nullish(), stop: z.number().nullish() }),
    response: z.object({ tasks: z.array(z.unknown()), env_name: z.string() }),
    errors: [...LOOKUP, 'invalid_split', 'invalid_index_range'],
  },
  createSession: {
    summary: 'Reserve a session id',
    body: z.object({ env: z.record(z.string(), z.string()).optional(), task_id: z.string().optional() }),
    headers: reservation,
    stream: reservationEvents,
    errors: ['deployment_not_found', 'secrets_invalid', 'override_not_allowed', 'capacity_exhausted', 'limit_reached', ...ENDED],
  },
  create: {
    summary: 'Open an episode: task_spec, or split and index',
    body: z.object({
      task_spec: z.unknown().optional(),
      split: z.string().optional(),
      index: z.number().optional(),
      env_name: z.string().optional(),
      toolset_name: z.string().optional(),
    }),
    response: sid,
    errors: [
      ...LOOKUP,
      ...ENDED,
      'session_id_required',
      'session_exists',
      'session_moved',
      'secrets_invalid',
      'capacity_exhausted',
      'limit_reached',
      'environment_starting',
      'invalid_split',
      'invalid_index',
      'unknown_toolset',
      'setup_timeout',
      'environment_failed',
    ],
  },
  prompt: { summary: 'Prompt of the episode, as blocks', response: z.array(block), errors: SESSION },
  messages: {
    summary: 'Conversation that the episode starts with',
    response: z.array(anyObject),
    errors: [...SESSION, 'messages_unsupported'],
  },
  taskTools: { summary: 'Tools of the episode', response: tools, errors: SESSION },
  call: {
    summary: 'Run a tool once; a repeat with its task_id replays the result',
    body: z.object({ name: z.string(), input: anyObject, task_id: z.string().optional() }),
    headers: callHeaders,
    stream: callEvents,
    errors: SESSION,
  },
  scoreGroup: {
    summary: 'Comparative rewards of several trajectories',
    body: z.object({ candidates: z.array(anyObject), task_id: z.string().optional() }),
    headers: callHeaders.omit({ 'idempotency-key': true }),
    stream: callEvents,
    errors: [...SESSION, 'score_group_unsupported'],
  },
  ping: {
    summary: 'Keep the session alive',
    response: z.object({ status: z.literal('ok') }),
    errors: ['session_id_required', 'session_not_found', 'session_moved', ...ENDED],
  },
  delete: { summary: 'End the session; idempotent', response: sid, errors: ['session_id_required', 'session_moved'] },
  createSandbox: {
    summary: 'Start a sandbox: a container for commands',
    body: createSandboxSchema,
    headers: z.object(failureHeader),
    stream: sandboxEvents,
    errors: ['environment_not_found', 'invalid_request', 'hosting_unsupported', 'limit_reached', 'backend_unreachable', ...ENDED],
  },
  run: {
    summary: 'Run a command in a sandbox once; a repeat with its task_id replays the result',
    body: runSchema,
    headers: callHeaders.omit({ 'idempotency-key': true }),
    stream: callEvents,
    errors: [...SANDBOX, 'answer_too_large'],
  },
  statFile: {
    summary: 'Size and digest of a file in a sandbox: path, sha256',
    response: z.object({ size: z.int(), sha256: z.string().optional() }),
    errors: SANDBOX,
  },
  readFile: { summary: 'Bytes of a file in a sandbox: path, offset, length. The header X-File-Size has its size', errors: SANDBOX },
  writeFile: {
    summary: 'Write a piece of a file in a sandbox: path, offset, mkdirs; or, with commit and size, put the pieces in place',
    response: z.object({ size: z.int(), sha256: z.string().optional() }),
    errors: [...SANDBOX, 'body_too_large'],
  },
  setNetwork: {
    summary: 'Replace the network policy of a sandbox',
    body: networkPolicySchema,
    response: z.object({ status: z.literal('applied') }),
    errors: [...SANDBOX, 'hosting_unsupported'],
  },
};

export const orsDocumentation: readonly DocumentedRoute[] = orsRoutes.flatMap((route) => {
  const paths = route.scoped ? [route.path, `/:env${route.path}`] : [route.path];
  return paths.map((path) => ({
    method: route.method,
    path,
    public: route.public,
    tag: 'Sessions',
    description: entries[route.operation],
  }));
});
