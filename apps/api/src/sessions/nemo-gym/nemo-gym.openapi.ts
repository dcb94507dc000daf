import type { ErrorCode } from '@palestra/protocol';
import { z } from 'zod';
import type { DocumentedRoute } from '../../platform/http/openapi.ts';

/** The routes of NeMo Gym in the OpenAPI document, without `/runs/{run}` and `/ng-rollout/{id}`, which may stand before each of them. */
const anyObject = z.record(z.string(), z.unknown());
const facts = z.looseObject({ split: z.string(), task_index: z.int() });
const seedBody = z.looseObject({
  palestra: facts.optional().describe('The facts that palestra.rows writes; also in verifier_metadata or task_data.'),
  resources_session_id: z.string().optional().describe('Chosen by the client, who may repeat the request.'),
  episode_id: z.object({ rollout_id: z.string(), attempt: z.int().optional() }).optional(),
  task_data: anyObject.optional(),
});
const cookie = z.object({ cookie: z.string().optional().describe('The cookie of seed_session names the session.') });
const verdict = z.looseObject({
  reward: z.number(),
  mask_sample: z.boolean(),
  failure_kind: z.string().nullable(),
  failure_reason: z.string().nullable(),
});
const closeBody = z.looseObject({ resources_session_id: z.string().optional() });

const LOST: ErrorCode[] = ['session_not_found', 'session_moved', 'session_id_required'];
const DEAD: ErrorCode[] = ['session_deleted', 'session_expired', 'session_lost', 'session_diverged', 'setup_failed'];
const BACKEND: ErrorCode[] = ['environment_starting', 'backend_unreachable', 'backend_timeout', 'backend_invalid'];
const OPENING: ErrorCode[] = [
  ...BACKEND,
  ...DEAD,
  'deployment_not_found',
  'unknown_variant',
  'invalid_split',
  'invalid_index',
  'invalid_json',
  'capacity_exhausted',
  'limit_reached',
  'environment_failed',
  'setup_timeout',
  'session_exists',
  'session_moved',
];
const CALLING: ErrorCode[] = [
  ...LOST,
  ...DEAD,
  ...BACKEND,
  'invalid_json',
  'invalid_body',
  'call_timeout',
  'environment_failed',
  'capacity_exhausted',
];

const ROUTES: [method: string, path: string, description: DocumentedRoute['description']][] = [
  ['GET', '', { summary: 'Liveness, also without a key', response: z.object({ status: z.literal('ok') }) }],
  [
    'POST',
    '/seed_session',
    { summary: 'Begin the episode of a row; its cookie names the session', body: seedBody, response: anyObject, errors: OPENING },
  ],
  [
    'POST',
    '/verify',
    {
      summary: 'The reward of an episode, or why it has none, and its end; the answer repeats the row',
      body: anyObject,
      headers: cookie,
      response: verdict,
      errors: [...LOST, 'invalid_json'],
    },
  ],
  [
    'POST',
    '/close_session',
    {
      summary: 'End an episode; idempotent, also for an id that was never seeded',
      body: closeBody,
      response: anyObject,
      errors: ['session_moved', 'session_id_required', 'deployment_not_found', 'invalid_json'],
    },
  ],
  [
    'POST',
    '/aggregate_metrics',
    { summary: 'Statistics of verified rows', body: z.looseObject({ verify_responses: z.array(anyObject) }), response: anyObject },
  ],
  ['GET', '/reverify_mode', { summary: 'Rewards cannot be computed again from a row', response: z.literal('unsupported') }],
  ['POST', '/:tool', { summary: 'Call a tool; the answer is its text', body: anyObject, headers: cookie, text: true, errors: CALLING }],
];

export const nemoGymDocumentation: readonly DocumentedRoute[] = ROUTES.map(([method, path, description]) => ({
  method,
  path: `/nemo-gym/:owner/:name${path}`,
  public: path === '',
  tag: 'NeMo Gym',
  description,
}));
