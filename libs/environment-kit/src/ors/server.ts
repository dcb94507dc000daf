import { type Clock, newUuid, systemClock } from '@palestra/kit';
import { encodeSseEvent, SSE_HEADERS } from '@palestra/kit/sse';
import {
  type JsonValue,
  ORS_VERSION,
  PalestraError,
  parseBody,
  readCallBody,
  readCreateBody,
  readCreateSessionBody,
  readScoreGroupBody,
  readSplitBody,
  readTaskBody,
  readTaskRangeBody,
} from '@palestra/protocol';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { EnvironmentHost } from '../host/environment-host.ts';
import { CallStreams } from './call-streams.ts';
import { callIdOf, readBody, secretsOf, sendError, sendJson, sessionIdOf } from './request.ts';

/** How long a request waits for setup before it gets a 503 with Retry-After. */
const SETUP_WAIT_MS = 25_000;
const SETUP_RETRY_AFTER_S = 2;

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The environment in the path; null if the path has none. */
  env: string | null;
  sid(): string;
  body: JsonValue;
}
type Handler = (exchange: Exchange) => void | Promise<void>;

export interface OrsServerOptions {
  clock?: Clock;
  setupWaitMs?: number;
}

/** Serves the Open Reward Standard over HTTP (docs/reference/ors.md). */
export function createOrsServer(host: EnvironmentHost, options: OrsServerOptions = {}): Server {
  const root = rootRoutes(host);
  const routes = environmentRoutes(host, options);
  const server = createServer((request, response) => {
    dispatch(host, root, routes, request, response).catch((error: unknown) => sendError(response, error));
  });
  // Clients keep idle connections for a minute; closing them earlier races with the next request.
  server.keepAliveTimeout = 75_000;
  return server;
}

async function dispatch(
  host: EnvironmentHost,
  root: Map<string, Handler>,
  routes: Map<string, Handler>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const segments = request.url!.split('?', 1)[0]!.split('/').filter(Boolean).map(decodeSegment);
  const [first = '', second] = segments;
  const isRoot = segments.length === 1 && (root.has(`GET ${first}`) || root.has(`POST ${first}`));
  const [env, action] = segments.length === 1 ? [null, first] : [first, second!];
  const table = isRoot ? root : routes;
  const handler = segments.length > 2 ? undefined : table.get(`${request.method} ${action}`);
  // The body is read even if it is not used, so that the connection can be reused.
  const raw = request.method === 'POST' ? await readBody(request) : null;
  if (!handler) {
    const other = request.method === 'GET' ? 'POST' : 'GET';
    const known = segments.length <= 2 && table.has(`${other} ${action}`);
    throw new PalestraError(known ? 'method_not_allowed' : 'route_not_found');
  }
  if (env !== null && !host.has(env)) host.tools(env);
  const body = parseBody(raw, JSON.parse);
  await handler({ request, response, env, body, sid: () => sessionIdOf(request) });
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new PalestraError('route_not_found');
  }
}

function rootRoutes(host: EnvironmentHost): Map<string, Handler> {
  const end = async ({ response, sid }: Exchange) => {
    const id = sid();
    await host.delete(id);
    sendJson(response, { sid: id });
  };
  return new Map<string, Handler>([
    ['GET health', ({ response }) => sendJson(response, { status: 'ok' })],
    ['GET version', ({ response }) => sendJson(response, { version: ORS_VERSION, build_sha: null })],
    ['GET list_environments', ({ response }) => sendJson(response, host.environments())],
    [
      'POST ping',
      ({ response, sid }) => {
        host.ping(sid());
        sendJson(response, { status: 'ok' });
      },
    ],
    [
      'POST create_session',
      ({ response, body }) => {
        // A repeat after a lost response contains the session id that the client got.
        const sid = readCreateSessionBody(body).taskId ?? newUuid();
        response.writeHead(200, SSE_HEADERS).end(encodeSseEvent('task_id', sid) + encodeSseEvent('end', ''));
      },
    ],
    [
      'POST create',
      async ({ request, response, sid, body }) => {
        const id = sid();
        const { task_spec: spec, split, index, env_name: env, toolset_name: toolsetName } = readCreateBody(body);
        const task = spec === undefined ? ({ kind: 'index', split: split!, index: index! } as const) : ({ kind: 'spec', spec } as const);
        await host.create({ sid: id, env: env ?? null, task, toolsetName: toolsetName ?? null, secrets: secretsOf(request) });
        sendJson(response, { sid: id });
      },
    ],
    ['POST delete', end],
    ['POST delete_session', end],
  ]);
}

function environmentRoutes(host: EnvironmentHost, options: OrsServerOptions): Map<string, Handler> {
  const streams = new CallStreams(options.clock ?? systemClock);
  const nameOf = (env: string | null) => env ?? host.environments()[0]!;
  const ready = async ({ sid }: Exchange) => {
    const id = sid();
    await whenReady(host, id, options.setupWaitMs ?? SETUP_WAIT_MS);
    return id;
  };
  return new Map<string, Handler>([
    ['GET tools', ({ response, env }) => sendJson(response, host.tools(env))],
    // Not in the standard: `palestra env push` reads it.
    ['GET guarantees', ({ response, env }) => sendJson(response, { ...host.guarantees(env) })],
    ['GET splits', ({ response, env }) => sendJson(response, host.splits(env))],
    [
      'POST tasks',
      async ({ response, env, body }) =>
        sendJson(response, { tasks: await host.tasks(env, readSplitBody(body).split), env_name: nameOf(env) }),
    ],
    [
      'POST num_tasks',
      async ({ response, env, body }) => sendJson(response, { num_tasks: await host.numTasks(env, readSplitBody(body).split) }),
    ],
    [
      'POST task',
      async ({ response, env, body }) => {
        const { split, index } = readTaskBody(body);
        sendJson(response, { task: await host.task(env, split, index), env_name: nameOf(env) });
      },
    ],
    [
      'POST task_range',
      async ({ response, env, body }) => {
        const { split, start, stop } = readTaskRangeBody(body);
        sendJson(response, { tasks: await host.taskRange(env, split, start, stop), env_name: nameOf(env) });
      },
    ],
    ['GET task_tools', async ({ response, sid }) => sendJson(response, await host.taskTools(sid()))],
    ['GET prompt', async (exchange) => sendJson(exchange.response, await host.prompt(await ready(exchange)))],
    ['GET messages', async (exchange) => sendJson(exchange.response, await host.messages(await ready(exchange)))],
    [
      'POST call',
      async (exchange) => {
        const sid = await ready(exchange);
        const { name, input, task_id: taskId } = readCallBody(exchange.body);
        if (taskId != null) return streams.resume(exchange.response, sid, taskId);
        return streams.start(exchange.response, sid, callIdOf(exchange.request), async () => (await host.call(sid, name, input)).text);
      },
    ],
    [
      'POST score_group',
      async (exchange) => {
        const sid = await ready(exchange);
        const { candidates, taskId } = readScoreGroupBody(exchange.body);
        host.assertScoresGroups(sid, exchange.env);
        if (taskId !== null) return streams.resume(exchange.response, sid, taskId);
        return streams.start(exchange.response, sid, null, () => host.scoreGroup(sid, exchange.env, candidates));
      },
    ],
  ]);
}

/** Waits for setup for a while, then rejects with a 503 that tells the client that nothing ran and that it should retry. */
async function whenReady(host: EnvironmentHost, sid: string, waitMs: number): Promise<void> {
  if (!host.isSettingUp(sid)) return host.ready(sid);
  const timeout = new AbortController();
  const timer = setTimeout(() => {
    timeout.abort(new PalestraError('environment_starting', { backendStarting: true, retryAfterSeconds: SETUP_RETRY_AFTER_S }));
  }, waitMs);
  try {
    await host.ready(sid, timeout.signal);
  } finally {
    clearTimeout(timer);
  }
}
