import { type OrsRoute, orsRoutes } from '@palestra/ors/server';
import { type ErrorCode, SPLIT_TYPES } from '@palestra/protocol';
import { z } from 'zod';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';

/** The ORS routes of the OpenAPI document. libs/ors checks the bodies, with the same rules and the SDK's error texts. */

const anyObject = z.record(z.string(), z.unknown());
const split = z.object({ split: z.string() });
const block = z.looseObject({ type: z.string() });
const tools = z.looseObject({
  tools: z.array(z.object({ name: z.string(), description: z.string(), input_schema: anyObject.nullable() })),
});
const sid = z.object({ sid: z.string() });

interface Entry {
  summary: string;
  body?: z.ZodType;
  response?: z.ZodType;
  errors?: ErrorCode[];
  stream?: boolean;
}

const SESSION: ErrorCode[] = [
  'session_id_required',
  'session_not_found',
  'session_deleted',
  'session_expired',
  'session_lost',
  'setup_failed',
];
const LOOKUP: ErrorCode[] = ['deployment_not_found', 'unknown_variant', 'backend_unreachable', 'backend_timeout', 'backend_invalid'];

const entries: Record<OrsRoute['operation'], Entry> = {
  health: { summary: 'Liveness', response: z.object({ status: z.literal('ok') }) },
  serverVersion: { summary: 'Version of this server', response: z.object({ version: z.string(), build_sha: z.string().nullable() }) },
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
    stream: true,
    errors: ['deployment_not_found', 'secrets_invalid', 'override_not_allowed', 'capacity_exhausted'],
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
    errors: [...LOOKUP, 'session_id_required', 'session_exists', 'invalid_split', 'invalid_index', 'unknown_toolset', 'environment_failed'],
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
    stream: true,
    errors: SESSION,
  },
  scoreGroup: {
    summary: 'Comparative rewards of several trajectories',
    body: z.object({ candidates: z.array(anyObject), task_id: z.string().optional() }),
    stream: true,
    errors: [...SESSION, 'score_group_unsupported'],
  },
  ping: {
    summary: 'Keep the session alive',
    response: z.object({ status: z.literal('ok') }),
    errors: ['session_id_required', 'session_not_found', 'session_deleted'],
  },
  delete: { summary: 'End the session; idempotent', response: sid, errors: ['session_id_required'] },
  createSandbox: { summary: 'Sandboxes are not hosted yet', body: anyObject, errors: ['environment_not_found', 'not_available'] },
  run: { summary: 'Sandboxes are not hosted yet', body: anyObject, errors: SESSION },
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
