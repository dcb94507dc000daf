import { randomUUID } from 'node:crypto';
import type { Belongings, Scope } from './tenants.world.ts';

/** What the matrix of tenants knows of the routes. What is open, own or unscoped stands here by name: a new route is refused, or named. */
export interface Route {
  method: string;
  /** As the document writes it: `/v1/runs/{id}`. */
  path: string;
}
export const called = ({ method, path }: Route): string => `${method} ${path}`;

/** Answer without a key. */
export const PUBLIC: Record<string, number> = {
  'GET /health': 200,
  'GET /health/live': 200,
  'GET /health/ready': 200,
  'GET /version': 200,
  'GET /openenv/{owner}/{name}/health': 200,
  'GET /nemo-gym/{owner}/{name}': 200,
  'GET /v1/environments': 200,
  // There is no such environment for whoever may not see it.
  'GET /v1/environments/{owner}/{name}': 404,
  'GET /v1/environments/{owner}/{name}/channels': 404,
  'GET /v1/environments/{owner}/{name}/discovery': 404,
  'GET /v1/environments/{owner}/{name}/required-secrets': 404,
  'GET /v1/environments/{owner}/{name}/variants': 404,
  'GET /v1/environments/{owner}/{name}/versions': 404,
  'GET /v1/environments//{name}/required-secrets': 404,
  // The key is in the body, and nobody has it.
  'POST /v1/login': 401,
  // A signature replaces the key.
  'POST /v1/hooks/git/{environmentId}': 401,
  'POST /v1/logout': 200,
  // Nobody opened a link.
  'GET /v1/shared': 404,
};
/** Look at no key, because they ask no database. */
export const KEYLESS = new Set(['GET /health/live', 'GET /health/ready']);
/** Of the caller's own organisation, whoever that is. */
export const OWN = new Set([
  'GET /v1/me',
  'GET /v1/namespace/current',
  'GET /v1/keys',
  'POST /v1/keys',
  'GET /v1/organisation',
  'PATCH /v1/organisation',
  'POST /v1/organisations',
  'GET /v1/members',
  'POST /v1/members',
  'GET /v1/browser-sessions',
  'GET /v1/audit',
  'GET /v1/audit/export',
  'GET /v1/shares',
  'GET /v1/runs',
  'DELETE /v1/demo',
  'GET /v1/search',
  'GET /v1/annotations',
  'GET /v1/review-queues',
  'GET /v1/views',
  'POST /v1/views',
  'GET /v1/alerts',
  'POST /v1/alerts',
  'GET /v1/alert-events',
  'POST /v1/alert-events/read',
  'GET /v1/webhooks',
  'POST /v1/webhooks',
  'GET /v1/exports',
  'POST /v1/exports',
  'POST /v1/traces',
  'GET /v1/stream',
  'GET /v1/sessions',
  'GET /v1/slots',
  'GET /v1/billing/api-usage',
  'GET /v1/github/auth-status',
  'GET /v1/github/repos',
  'POST /v1/rollouts',
  'GET /health',
  'GET /health/live',
  'GET /health/ready',
  'GET /version',
  'GET /v1/environments',
  'GET /v1/environment-usage',
  'GET /v1/hosting',
  'POST /v1/logout',
]);
/** Whatever the key may do. */
export const UNSCOPED = new Set([
  'GET /metrics',
  'GET /v1/health',
  'GET /v1/me',
  'GET /v1/namespace/current',
  'GET /v1/billing/api-usage',
  'GET /v1/hosting',
  'GET /v1/environments/{owner}/{name}/task-sets',
  'GET /v1/environments/{owner}/{name}/tasks',
]);
/** Say the same of a session that never was: ending is idempotent, and clients take a 404 of score_group for an old server. */
export const ALIKE = new Set([
  'POST /delete',
  'POST /delete_session',
  'POST /score_group',
  'POST /{env}/score_group',
  // Their session is in a cookie, or their task in the body; tests/integration/protocols/nemo-gym.spec.ts sends those of another tenant.
  'GET /nemo-gym/{owner}/{name}',
  'GET /nemo-gym/{owner}/{name}/reverify_mode',
  'POST /nemo-gym/{owner}/{name}/seed_session',
  'POST /nemo-gym/{owner}/{name}/{tool}',
  'POST /nemo-gym/{owner}/{name}/verify',
  'POST /nemo-gym/{owner}/{name}/close_session',
  'POST /nemo-gym/{owner}/{name}/aggregate_metrics',
]);

/** Nothing that could be taken: 501 for whoever has a key. */
export const isAbsent = ({ path }: Route): boolean => /^\/v1\/github\/(?:install|reauth)-url$/.test(path);
export const isOfSessionPlane = ({ path }: Route): boolean => !/^\/(v1\/|health\/|metrics$)/.test(path);
export const isOfOneSession = ({ path }: Route): boolean =>
  /^(?!\/v1\/).*\/(call|create|delete|delete_session|messages|ping|prompt|run|score_group|task_tools)$/.test(path);

/** Also the forms that the document leaves out: the dashboard's stream, and the session plane with an owner in the path. */
export function allRoutes(documented: Route[]): Route[] {
  const long = documented
    .filter(({ path }) => path.startsWith('/{env}/'))
    .map(({ method, path }) => ({ method, path: path.replace('/{env}/', '/{owner}/{name}/') }));
  // Afterwards a tenant that wrote under another's id has a rollout of that id itself, which it may read and delete.
  const isLast = (route: Route): boolean => called(route) === 'POST /v1/rollouts';
  const all = [...documented, ...long, { method: 'GET', path: '/v1/stream' }];
  return [...all.filter((route) => !isLast(route)), ...all.filter(isLast)];
}

/** null: any key will do. */
export function scopeOf(route: Route): Scope | null {
  const name = called(route);
  if (name in PUBLIC || UNSCOPED.has(name)) return null;
  if (isOfSessionPlane(route)) return 'sessions';
  if (route.path.endsWith('/task-difficulty') || name === 'GET /v1/environments/{owner}/{name}/runs') return 'rollouts';
  // Those of rollouts; of tasks there are /v1/exports/tasks and one look-up for both.
  if (route.path === '/v1/exports' || route.path.startsWith('/v1/exports/{id}/files/')) return 'rollouts';
  switch (route.path.split('/')[2]) {
    case 'keys':
    case 'organisation':
    case 'organisations':
    case 'members':
    case 'browser-sessions':
    case 'audit':
      return 'keys';
    case 'shares':
      return 'rollouts';
    case 'demo':
    case 'rollouts':
    case 'runs':
    case 'stream':
    case 'search':
    case 'annotations':
    case 'review-queues':
    case 'views':
    case 'alerts':
    case 'alert-events':
    case 'webhooks':
    case 'environment-usage':
    case 'diff':
    case 'compare':
    case 'traces':
      return 'rollouts';
    case 'sessions':
    case 'text-sessions':
    case 'slots':
    case 'exports':
      return 'sessions';
    case 'environments':
    case 'files':
    case 'deploys':
    case 'github':
      return 'environments';
    default:
      throw new Error(`say which scope ${name} needs`);
  }
}

/** The URL of the first tenant's thing. */
export function urlOf({ path }: Route, first: Belongings): string {
  const ids: Record<string, string> = {
    keys: first.keyId,
    runs: first.runId,
    rollouts: first.rolloutId,
    exports: first.exportId,
    'review-queues': first.queueId,
    'text-sessions': first.textId,
    deploys: first.deployId,
    github: path.includes('/deployments/{id}') ? first.deployId : first.environmentId,
  };
  const { marks: _, ...belongings } = first;
  const values: Record<string, string> = {
    ...belongings,
    env: 'told',
    path: first.file,
    run: first.runId,
    index: '0',
    position: '1',
    key: '1',
    task: '1',
    split: 'train',
    secret: 'API_KEY',
    a: '1',
    b: '1',
    id: ids[path.split('/')[2]!] ?? first.environmentId,
  };
  // The SDK asks with an empty owner for a bare name.
  const real = path.replace('/v1/environments/{name}/', '/v1/environments//{name}/');
  const filled = real.replaceAll(/\{(\w+)\}/g, (_match, name: string) => values[name]!);
  if (path.endsWith('/search')) return `${filled}?q=canary`;
  if (path === '/v1/diff') return `${filled}?a=${first.rolloutId}&b=${first.rolloutId}`;
  if (path.startsWith('/v1/compare')) return `${filled}?runs=${first.runId},${first.runId}`;
  if (path.startsWith('/v1/runs/{run}/tools/')) return `${filled}?tool=tell`;
  return path.startsWith('/v1/environments') && path.endsWith('/tasks') ? `${filled}?split=train` : filled;
}

/** A body that would do something if the caller were allowed to. */
export function bodyOf({ method, path }: Route, first: Belongings): object | null {
  if (!['POST', 'PUT', 'PATCH'].includes(method)) return null;
  const environment = `${first.owner}/${first.name}`;
  const source = { kind: 'remote', url: 'http://127.0.0.1:9' };
  const message = { eventType: 'message', eventId: randomUUID(), rolloutEventId: first.rolloutId, timestamp: Date.now(), index: 1 };
  const split = 'train';
  const bodies: Record<string, object> = {
    call: { name: 'tell', input: {} },
    create: { split, index: 0 },
    create_sandbox: { environment, image: 'none', machine_size: '1:1', block_network: true },
    tasks: path.startsWith('/v1/exports')
      ? { environments: [environment], split, max_tasks: 1, format: 'jsonl', prompt_format: 'text' }
      : { split },
    num_tasks: { split },
    task: { split, index: 0 },
    task_range: { split, start: 0, stop: 1 },
    score_group: { candidates: [] },
    details: { new_description: 'taken over', new_is_private: false },
    versions: { source },
    promote: { version: 1 },
    hosting: { max: 1 },
    report: { created_at: '2026-01-01T00:00:00Z', kit: '0.1.0', checks: [], players: [], reward_range: null },
    environments: { name: 'squatter', namespace: first.owner, description: '', source },
    'upload-urls': { environmentId: first.environmentId, files: [{ fileName: 'taken-over.txt' }] },
    annotations: path.startsWith('/v1/runs/')
      ? { rollouts: [first.rolloutId], tag: 'taken over' }
      : { rollout: first.rolloutId, tag: 'taken over' },
    'review-queues': { name: 'taken over', run: first.runId },
    '{position}': { choice: 'good' },
    views: { name: 'one more' },
    '{id}': path.startsWith('/v1/alerts/')
      ? { name: 'taken over', condition: { kind: 'silence', minutes: 5 } }
      : method === 'PUT'
        ? { name: 'taken over' }
        : path.startsWith('/v1/members/')
          ? { role: 'owner' }
          : {},
    members: { name: 'one more' },
    organisations: { name: 'one-more' },
    shares: { rollout: first.rolloutId },
    alerts: { name: 'one more', condition: { kind: 'silence', minutes: 5 } },
    preview: { run: first.runId, condition: { kind: 'silence', minutes: 5 } },
    read: { until: randomUUID() },
    webhooks: { name: 'one more', url: 'http://127.0.0.1:9' },
    keys: { name: 'one more', scopes: ['rollouts'] },
    '{secret}': { value: 'taken over' },
    deploys: { source: { kind: 'url', urls: ['http://127.0.0.1:9'] } },
    git: { url: 'https://git.example/taken/over.git' },
    connect: { githubRepoId: 'taken over' },
    login: { key: 'or_nobody_has_this_key' },
    rollouts: { events: [{ ...message, type: 'assistant_message', content: 'taken over', isFinished: false, metadata: {} }] },
    sessions: { environment, split, index: 0 },
    'text-sessions': { environment, split, index: 0 },
    step: { text: 'taken over' },
    fork: { at_call: 0 },
    rollout: { run: 'taken over' },
  };
  return bodies[path.split('/').at(-1)!] ?? {};
}
