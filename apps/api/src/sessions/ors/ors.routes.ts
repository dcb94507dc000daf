import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { OrsServer, type OrsRequest, type OrsRoute, orsRoutes } from '@palestra/ors/server';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { ORS_VERSION, PalestraError, stringifyJson } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { countRequest, onDelivery } from '../http/delivery.ts';
import { readRecording } from '../http/recording-headers.ts';
import type { ProtocolContext } from '../http/protocol.ts';
import { type Admit, streamCall, streamReservation } from './sse-reply.ts';
import { isSandboxOperation, serveSandbox } from './sandbox.routes.ts';

interface OrsContext extends ProtocolContext {
  server: OrsServer;
}

const BODY = { config: { rawBody: true, bodyLimit: SESSION_BODY_LIMIT } };
/** How long `/score_group` waits for a refusal, which must be an HTTP status (404 means "unsupported"). A judge takes longer. */
const SCORE_GROUP_HOLD_MS = 5_000;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/**
 * The Open Reward Standard's routes at the root of the origin. They have their own Fastify scope, because bodies must stay bytes here: task
 * specifications and tool inputs keep the spelling of their numbers, and POSTs without a body come with any content type.
 */
export async function orsPlugin(scope: FastifyInstance, context: ProtocolContext): Promise<void> {
  const { engine, directory, checkHealth } = context;
  const options: OrsContext = { ...context, server: new OrsServer(engine, directory, ORS_VERSION, checkHealth) };
  scope.setErrorHandler((error, request, reply) => options.sendError(error, request, reply));
  const allowed = new Map<string, string[]>();
  for (const route of orsRoutes) {
    for (const url of urlsOf(route)) {
      allowed.set(url, [...(allowed.get(url) ?? []), route.method]);
      scope.route({
        method: route.method,
        url,
        ...BODY,
        exposeHeadRoute: false,
        handler: (request, reply) => handle(route, request, reply, options),
      });
    }
  }
  for (const [url, methods] of allowed) {
    const others = METHODS.filter((method) => !methods.includes(method));
    scope.route({ method: others, url, exposeHeadRoute: false, handler: refuseMethod });
  }
}

function urlsOf({ path, scoped }: OrsRoute): string[] {
  return scoped ? [path, `/:env${path}`, `/:owner/:env${path}`] : [path];
}

/**
 * Waits for a slot only with `X-Palestra-Queue`, or with `X-Secrets`, which the official client sends for an episode and not for discovery
 * (docs/reference/ors.md#lifecycle).
 */
async function reserve(request: FastifyRequest, reply: FastifyReply, ors: OrsRequest, { server, routing }: OrsContext): Promise<void> {
  const showPosition = header(request, 'x-palestra-queue') !== null;
  const { sid, clientSid } = await server.createSession(ors);
  const admit: Admit = (signal, onPosition) => routing.engine.admit(ors.caller, sid, signal, onPosition);
  const waits = showPosition || ors.secrets !== null;
  await streamReservation(reply, clientSid, { admit: waits ? admit : null, showPosition, hasFailureEvents: hasFailureEvents(request) });
}

const hasFailureEvents = (request: FastifyRequest): boolean => header(request, 'x-palestra-failure') !== null;

async function refuseMethod(): Promise<never> {
  throw new PalestraError('method_not_allowed');
}

async function handle(route: OrsRoute, request: FastifyRequest, reply: FastifyReply, options: OrsContext): Promise<void> {
  const { server } = options;
  const caller = await options.authenticate(request);
  if (caller === null && !route.public) throw new PalestraError('unauthorized');
  countRequest(request);
  const ors = readRequest(request, caller as Caller);
  if (ors.sid !== null && caller !== null) ors.sid = await options.routing.engine.sidOf(caller, ors.sid);
  if (ors.sid !== null && caller !== null && (await options.routing.elsewhere(request, reply, caller, ors.sid))) return;
  const { operation } = route;
  if (isSandboxOperation(operation)) return serveSandbox(operation, request, reply, ors, options);
  switch (operation) {
    case 'createSession':
      return reserve(request, reply, ors, options);
    case 'call':
      return streamCall(request, reply, await server.call(ors), { holdForRefusalMs: 0, hasFailureEvents: hasFailureEvents(request) });
    case 'scoreGroup':
      return streamCall(request, reply, await server.scoreGroup(ors), {
        holdForRefusalMs: SCORE_GROUP_HOLD_MS,
        hasFailureEvents: hasFailureEvents(request),
      });
    case 'create':
      return create(request, reply, ors, options);
    default:
      await reply.type('application/json').send(stringifyJson(await server[operation](ors)));
  }
}

/**
 * Opens the session. A client that does not receive the answer sends the request again and must not get `session_exists`, so the session is
 * marked. If its slot is on another process, that process opens it.
 */
async function create(request: FastifyRequest, reply: FastifyReply, ors: OrsRequest, { server, routing }: OrsContext): Promise<void> {
  const { sid, caller } = ors;
  const disconnected = new AbortController();
  onDelivery(request, reply, (delivery) => {
    if (delivery !== 'undelivered') return;
    disconnected.abort(new PalestraError('call_abandoned'));
    if (sid !== null) void routing.engine.markCreateUndelivered(sid);
  });
  try {
    await reply.type('application/json').send(stringifyJson(await server.create(ors, disconnected.signal)));
  } catch (error) {
    const moved = error instanceof PalestraError && error.code === 'session_moved';
    if (!moved || sid === null || !(await routing.elsewhere(request, reply, caller, sid))) throw error;
  }
}

const header = (request: FastifyRequest, name: string): string | null => {
  const value = request.headers[name];
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
};

function readRequest(request: FastifyRequest, caller: Caller): OrsRequest {
  const params = request.params as { owner?: string; env?: string };
  const clientSid = header(request, 'x-session-id');
  return {
    caller,
    sid: clientSid,
    clientSid,
    deployment: header(request, 'x-deployment'),
    secrets: header(request, 'x-secrets'),
    recording: readRecording(request.headers),
    owner: params.owner ?? null,
    segment: params.env ?? null,
    body: Buffer.isBuffer(request.body) ? request.body : null,
    idempotencyKey: header(request, 'idempotency-key'),
  };
}
