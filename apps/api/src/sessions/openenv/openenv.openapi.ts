import type { ErrorCode } from '@palestra/protocol';
import { z } from 'zod';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';
import { rpcAnswerSchema, rpcRequestSchema } from '../http/json-rpc.schema.ts';

/**
 * The OpenEnv routes of the OpenAPI document. libs/openenv checks the bodies, with the error texts of OpenEnv's own server. Sockets are in
 * docs/openenv.md. Each environment also has its own document: `/openenv/{owner}/{name}/openapi.json`.
 */
const anyObject = z.record(z.string(), z.unknown());
const reply = z.object({
  observation: anyObject,
  reward: z.number().nullable(),
  done: z.boolean(),
  metadata: anyObject.nullable().optional(),
});
const resetBody = z.looseObject({ seed: z.int().min(0).nullish(), episode_id: z.string().max(255).nullish() });
const stepBody = z.looseObject({ action: anyObject, timeout_s: z.number().nullish(), request_id: z.string().max(255).nullish() });
const split = z.object({ split: z.string() });

const LOOKUP: ErrorCode[] = ['deployment_not_found', 'environment_starting', 'backend_unreachable', 'backend_timeout', 'backend_invalid'];
const TASKS: ErrorCode[] = [...LOOKUP, 'unknown_variant', 'invalid_split', 'invalid_index', 'invalid_index_range', 'tasks_not_listable'];
const PLAY: ErrorCode[] = [...LOOKUP, 'invalid_split', 'invalid_index', 'capacity_exhausted', 'session_lost', 'environment_failed'];

const OPENENV: [method: string, path: string, summary: string, description?: Partial<DocumentedRoute['description']>][] = [
  ['GET', '/health', 'Liveness, also without a key', { response: z.object({ status: z.literal('healthy') }) }],
  ['GET', '/metadata', 'Name, description and version of the environment', { response: anyObject }],
  [
    'GET',
    '/catalog.json',
    'The OpenEnv catalogue with the card of this environment, for `openenv discover --catalog`',
    { response: anyObject, errors: [...LOOKUP, 'not_available'] },
  ],
  ['GET', '/schema', 'JSON Schemas of action, observation and state', { response: anyObject }],
  ['GET', '/openapi.json', 'The OpenAPI document of this environment', { response: anyObject }],
  ['POST', '/reset', 'Begin a separate episode and return its first observation', { body: resetBody, response: reply, errors: PLAY }],
  ['POST', '/step', 'One step in a separate episode', { body: stepBody, response: reply, errors: PLAY }],
  ['GET', '/state', 'The state of a fresh episode', { response: anyObject, errors: PLAY }],
  [
    'POST',
    '/mcp',
    "OpenEnv's JSON-RPC: tools, and sessions that sockets attach to; errors of a message are JSON-RPC errors with status 200",
    { body: rpcRequestSchema, response: rpcAnswerSchema },
  ],
  ['GET', '/list_environments', 'Its names', { response: z.array(z.string()) }],
  ['GET', '/:variant/splits', 'Splits', { response: z.array(anyObject), errors: TASKS }],
  ['POST', '/:variant/tasks', 'Every task of a split', { body: split, response: anyObject, errors: TASKS }],
  [
    'POST',
    '/:variant/num_tasks',
    'Number of tasks of a split',
    { body: split, response: z.object({ num_tasks: z.number() }), errors: TASKS },
  ],
  ['POST', '/:variant/task', 'One task by its index', { body: split.extend({ index: z.number() }), response: anyObject, errors: TASKS }],
  [
    'POST',
    '/:variant/task_range',
    'Tasks of a range of indexes',
    { body: split.extend({ start: z.number().nullish(), stop: z.number().nullish() }), response: anyObject, errors: TASKS },
  ],
  ['GET', '/container/:id/health', 'A stateful episode over HTTP, as clients of OpenEnv 0.1 expect of a container of theirs'],
  ['POST', '/container/:id/reset', 'Begin its episode', { body: resetBody, response: reply, errors: PLAY }],
  ['POST', '/container/:id/step', 'One step of it', { body: stepBody, response: reply, errors: PLAY }],
  ['GET', '/container/:id/state', 'Its state', { response: anyObject, errors: PLAY }],
  ['DELETE', '/container/:id', 'End it; idempotent'],
];

export const openEnvDocumentation: readonly DocumentedRoute[] = OPENENV.map(([method, path, summary, description]) => ({
  method,
  path: `/openenv/:owner/:name${path}`,
  public: path === '/health',
  tag: 'OpenEnv',
  description: { summary, errors: LOOKUP, ...description },
}));
