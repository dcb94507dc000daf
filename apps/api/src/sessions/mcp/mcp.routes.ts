import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { newUuid } from '@palestra/kit';
import { CallEvents, cursorOf, freshCursor, type McpCall, McpServer, rpcErrorOf } from '@palestra/mcp/server';
import { type JsonValue, PalestraError } from '@palestra/protocol';
import { VERSION } from '@palestra/protocol/version';
import type { Caller } from '@palestra/session';
import type { McpTimings } from '../../platform/config.ts';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { errorHeaders } from '../../platform/http/error.filter.ts';
import { onClosed } from '../../platform/http/on-closed.ts';
import { countRequest, onDelivery } from '../http/delivery.ts';
import type { ProtocolContext } from '../http/protocol.ts';
import { CALL_HEADER, FORWARDED } from '../http/forwarder.ts';
import { assertOwnOrigin } from '../http/own-origin.ts';
import { readRecording } from '../http/recording-headers.ts';
import { exchange, resumeStream } from './mcp-exchange.ts';
import { headerOf, INDEX_HEADER, type McpMessage, optionOf, readMessage, SESSION_HEADER, SPLIT_HEADER } from './mcp-request.ts';

const PATH = '/mcp/:owner/:name';
const BODY = { config: { rawBody: true, bodyLimit: SESSION_BODY_LIMIT } };
const LAST_EVENT_HEADER = 'last-event-id';

interface McpContext extends ProtocolContext {
  mcpServer: McpServer;
  timings: McpTimings;
}
interface AuthenticatedRequest {
  request: FastifyRequest;
  reply: FastifyReply;
  caller: Caller;
  address: { owner: string; name: string };
}

/**
 * `/mcp/{owner}/{env}`: MCP's streamable HTTP. POST sends messages, GET listens, DELETE ends the episode. Has its own Fastify scope,
 * because bodies must stay bytes: a request can be forwarded to another process.
 */
export async function mcpPlugin(scope: FastifyInstance, options: ProtocolContext): Promise<void> {
  const timings = options.config.mcp;
  const mcpServer = new McpServer(options.engine, options.directory, VERSION, timings.beatMs);
  const mcp: McpContext = { ...options, mcpServer, timings };
  scope.setErrorHandler((error, request, reply) => sendRpcError(error, request, reply, options));
  const routes = { POST: post, GET: listen, DELETE: end };
  for (const [method, handle] of Object.entries(routes)) {
    scope.route({
      method,
      url: PATH,
      ...BODY,
      exposeHeadRoute: false,
      handler: async (request, reply) => handle(await authenticated(request, reply, options), mcp),
    });
  }
  const refuse = async () => {
    throw new PalestraError('method_not_allowed');
  };
  scope.route({ method: ['PUT', 'PATCH'], url: PATH, exposeHeadRoute: false, handler: refuse });
}

async function authenticated(
  request: FastifyRequest,
  reply: FastifyReply,
  { authenticate }: ProtocolContext,
): Promise<AuthenticatedRequest> {
  const caller = await authenticate(request);
  assertOwnOrigin(request, caller);
  if (caller === null) throw new PalestraError('unauthorized');
  countRequest(request);
  return { request, reply, caller, address: request.params as AuthenticatedRequest['address'] };
}

/** Sends errors as JSON-RPC, whose message clients show. Internal errors go to the common handler. */
function sendRpcError(error: unknown, request: FastifyRequest, reply: FastifyReply, { sendError }: ProtocolContext): void {
  if (!(error instanceof PalestraError) || reply.raw.headersSent) return sendError(error, request, reply);
  const { code, message, data } = rpcErrorOf(error);
  const { status } = error;
  if (status === 401) void reply.header('www-authenticate', 'Bearer realm="palestra"');
  if (status === 405) void reply.header('allow', 'GET, POST, DELETE');
  void reply
    .status(status)
    .headers(errorHeaders(error))
    .type('application/json')
    .send(JSON.stringify({ jsonrpc: '2.0', id: idOf(request), error: { code, message, data } }));
}

function idOf({ body }: FastifyRequest): JsonValue {
  try {
    return readMessage(body).request?.id ?? null;
  } catch {
    return null;
  }
}

async function post(incoming: AuthenticatedRequest, mcp: McpContext): Promise<void> {
  const message = readMessage(incoming.request.body);
  const sid = headerOf(incoming.request, SESSION_HEADER);
  if (message.request?.method === 'initialize') return initialize(incoming, message, mcp);
  if (sid === null) return refuseWithoutSession(incoming, message);
  if (await mcp.routing.elsewhere(incoming.request, incoming.reply, incoming.caller, sid)) return;
  await mcp.mcpServer.alive(incoming.caller, sid, incoming.address, message.request === null || message.request.method === 'ping');
  if (message.call !== null) return call(incoming, sid, { ...message, call: message.call }, mcp);
  const server = mcp.mcpServer.server(incoming.caller, sid);
  await exchange(incoming.request, incoming.reply, server, { message: message.parsed, as: 'json', timings: mcp.timings });
}

/**
 * Refuses `server/discover` (protocol 2026-07-28) as an unknown method, because its requests carry no session id and could not be tied to
 * an episode. Clients then use `initialize`.
 */
async function refuseWithoutSession({ reply }: AuthenticatedRequest, { request }: McpMessage): Promise<void> {
  if (request?.method !== 'server/discover') {
    throw new PalestraError('invalid_request', { detail: 'The Mcp-Session-Id header is required: begin with "initialize".' });
  }
  const error = { code: -32_601, message: 'Method not found: server/discover. Begin with "initialize".' };
  await reply.type('application/json').send(JSON.stringify({ jsonrpc: '2.0', id: request.id, error }));
}

/** Opens an episode. Waits until it is open or the client leaves. Its slot can be on another process. */
async function initialize(
  incoming: AuthenticatedRequest,
  { parsed }: McpMessage,
  { mcpServer, engine, routing, timings }: McpContext,
): Promise<void> {
  const { request, reply, caller, address } = incoming;
  // A forwarded request has its id already; from a client it is the id of an ended session.
  const forwardedId = request.headers[FORWARDED] === undefined ? null : headerOf(request, SESSION_HEADER);
  const forwardedSid = forwardedId === null ? null : await engine.sidOf(caller, forwardedId);
  const sid = forwardedSid ?? newUuid();
  if (forwardedSid !== null && (await routing.elsewhere(request, reply, caller, forwardedSid))) return;
  const task = { split: optionOf(request, 'split', SPLIT_HEADER), index: optionOf(request, 'index', INDEX_HEADER) };
  const chosen = await mcpServer.choose({ caller, ...address, variant: optionOf(request, 'variant', 'x-palestra-variant'), request: task });
  // The client left while the task was chosen, so `close` will not be emitted again.
  if (reply.raw.closed) throw new PalestraError('call_abandoned');
  const disconnected = new AbortController();
  let isAnswered = false;
  reply.raw.once('finish', () => (isAnswered = true));
  reply.raw.once('close', () => {
    disconnected.abort(new PalestraError('call_abandoned'));
    // The client has not received the id, so it cannot use the session.
    if (!isAnswered) void engine.delete(caller, sid).catch(() => {});
  });
  const options = { secrets: headerOf(request, 'x-secrets'), recording: readRecording(request.headers) };
  try {
    const greeting = await mcpServer.open({ ...chosen, sid }, options, disconnected.signal);
    await exchange(request, reply, mcpServer.greeting(greeting), { message: parsed, sid, as: 'json', timings });
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'session_moved') throw error;
    // The other process handles the session from here.
    isAnswered = true;
    request.headers[SESSION_HEADER] = sid;
    request.headers[SPLIT_HEADER] = chosen.task.split;
    request.headers[INDEX_HEADER] = String(chosen.task.index);
    if (!(await routing.elsewhere(request, reply, caller, sid))) throw error;
  }
}

/** Runs a tool once. A client that lost its connection and repeats the call joins it (docs/adr/0007). */
async function call(
  { request, reply, caller }: AuthenticatedRequest,
  sid: string,
  { parsed, request: rpc, call: { tool, input, progressToken } }: McpMessage & { call: object },
  { mcpServer, routing, timings }: McpContext,
): Promise<void> {
  const cursor = freshCursor(null, rpc!.id, progressToken);
  let begun: Promise<McpCall>;
  let isSettled = true;
  try {
    const running = await mcpServer.calls.begin(caller, sid, { requestId: rpc!.id, tool, input });
    cursor.taskId = running.open.taskId;
    // `request.raw.destroyed` is also true after the body was read.
    if (request.raw.socket.destroyed) {
      running.abandon();
      reply.hijack();
      return;
    }
    watchDelivery(request, reply, running);
    const result = running.result();
    isSettled = await settlesWithin(result, progressToken === undefined ? timings.jsonHoldMs : timings.progressHoldMs);
    begun = Promise.resolve({ ...running, result: () => result });
  } catch (error) {
    const moved = error instanceof PalestraError && error.code === 'session_moved';
    if (moved && (await routing.elsewhere(request, reply, caller, sid))) return;
    begun = Promise.reject(error);
    begun.catch(() => {});
  }
  const server = mcpServer.server(caller, sid, { call: begun, cursor });
  const stream = { as: 'stream', events: new CallEvents(cursor) } as const;
  await exchange(request, reply, server, { message: parsed, timings, ...(isSettled ? { as: 'json' } : stream) });
}

function watchDelivery(request: FastifyRequest, reply: FastifyReply, { open }: McpCall): void {
  const view = open.stream();
  onDelivery(request, reply, (delivery) => (delivery === 'undelivered' ? view.undelivered() : view.delivered()));
  if (request.headers[FORWARDED] !== undefined && open.taskId !== null) reply.raw.setHeader(CALL_HEADER, open.taskId);
}

/**
 * Resumes the stream of a call on any process: the remaining progress and the result. The tool does not run again. A final error is the
 * answer of the original request; only a retryable error is an HTTP error, after which the client tries again.
 */
async function resume(
  { request, reply, caller, address }: AuthenticatedRequest,
  sid: string,
  lastEventId: string,
  { mcpServer, timings }: McpContext,
): Promise<void> {
  const cursor = cursorOf(lastEventId);
  if (cursor === null) throw new PalestraError('invalid_request', { detail: 'Last-Event-ID: not an event of this server.' });
  const call = mcpServer.alive(caller, sid, address, false).then(() => mcpServer.calls.resume(caller, sid, cursor.taskId));
  try {
    watchDelivery(request, reply, await call);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.retryable) throw error;
  }
  const server = mcpServer.server(caller, sid, { call, cursor });
  const message = { jsonrpc: '2.0', id: cursor.requestId, method: 'tools/call', params: { name: '' } };
  await resumeStream(request, reply, server, { message, events: new CallEvents(cursor), timings });
}

async function settlesWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), limitMs)));
  const settled = work.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, timeout]).finally(() => clearTimeout(timer));
}

/**
 * With Last-Event-ID, resumes the stream of a call. Otherwise opens a stream without messages: while it is open, the client lives; when it
 * ends, the session has ended.
 */
async function listen(incoming: AuthenticatedRequest, mcp: McpContext): Promise<void> {
  const { request, reply, caller, address } = incoming;
  const { mcpServer, engine, routing, timings } = mcp;
  const sid = headerOf(request, SESSION_HEADER);
  if (sid === null) throw new PalestraError('method_not_allowed');
  if (await routing.elsewhere(request, reply, caller, sid)) return;
  onClosed(reply.raw, mcp.inFlight.enter('streams', caller));
  const lastEventId = headerOf(request, LAST_EVENT_HEADER);
  if (lastEventId !== null) return resume(incoming, sid, lastEventId, mcp);
  await mcpServer.alive(caller, sid, address, false);
  const close = await exchange(request, reply, mcpServer.server(caller, sid), { as: 'stream', timings });
  const pings = setInterval(() => {
    engine.ping(caller, sid).catch((error: unknown) => error instanceof PalestraError && close());
  }, timings.listenPingMs);
  pings.unref();
  onClosed(reply.raw, () => clearInterval(pings));
}

/** Ends the episode with teardown. */
async function end({ request, reply, caller, address }: AuthenticatedRequest, { mcpServer, engine, routing }: McpContext): Promise<void> {
  const sid = headerOf(request, SESSION_HEADER);
  if (sid === null) throw new PalestraError('session_id_required', { detail: 'The Mcp-Session-Id header is required.' });
  if (await routing.elsewhere(request, reply, caller, sid)) return;
  await mcpServer.alive(caller, sid, address, false);
  await engine.delete(caller, sid);
  await reply.status(200).send();
}
