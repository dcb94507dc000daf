import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { newUuid } from '@palestra/kit';
import {
  classifyCode,
  isObject,
  type JsonObject,
  type JsonValue,
  PalestraError,
  parseBody,
  parseJson,
  stringifyJson,
} from '@palestra/protocol';
import { type Caller, type CallOutcome, errorOfOutcome, type HostedEnvironment } from '@palestra/session';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { countRequest, onDelivery } from '../http/delivery.ts';
import { CALL_HEADER, FORWARDED } from '../http/forwarder.ts';
import { assertOwnOrigin } from '../http/own-origin.ts';
import type { ProtocolContext, StoredSession } from '../http/protocol.ts';
import { type NemoGymAddress, readAddress } from './nemo-gym-address.ts';
import { aggregateMetrics } from './nemo-gym-metrics.ts';
import { readSeed, readSessionId, type SeedRequest } from './nemo-gym-task.ts';
import { lastMessage, maskedVerdict, type Verdict, verdictOf } from './nemo-gym-verdict.ts';

const PATH = '/nemo-gym/:owner/:name';
const BODY = { config: { rawBody: true, bodyLimit: SESSION_BODY_LIMIT }, exposeHeadRoute: false };
/** Names the session, as the cookie of NeMo Gym's own servers does. Only the organisation of the session can use it. */
const COOKIE = 'palestra_episode';
const DISCOVERY_DEADLINE_MS = 120_000;

interface Incoming {
  request: FastifyRequest;
  reply: FastifyReply;
  caller: Caller;
  address: NemoGymAddress;
  body: JsonValue;
}
/** Resolves to the JSON of the answer; undefined when it has been sent. */
type Handler = (incoming: Incoming, context: ProtocolContext) => Promise<JsonValue>;

const POST: Readonly<Record<string, Handler>> = {
  seed_session: seedSession,
  verify,
  close_session: closeSession,
  aggregate_metrics: async ({ body }) => aggregateMetrics(body),
};
const GET: Readonly<Record<string, Handler>> = { reverify_mode: async () => 'unsupported' };

/**
 * `/nemo-gym/{owner}/{env}[/runs/{run}]`: the HTTP contract of NeMo Gym's resources servers. An episode begins with `seed_session`, whose
 * cookie names the session; each tool is a route; `verify` gives the reward.
 */
export async function nemoGymPlugin(scope: FastifyInstance, context: ProtocolContext): Promise<void> {
  scope.setErrorHandler((error, request, reply) => context.sendError(error, request, reply));
  for (const method of ['GET', 'POST'] as const) {
    for (const url of [PATH, `${PATH}/*`]) {
      scope.route({ method, url, ...BODY, handler: (request, reply) => answer(method, request, reply, context) });
    }
  }
}

async function answer(method: 'GET' | 'POST', request: FastifyRequest, reply: FastifyReply, context: ProtocolContext): Promise<void> {
  const caller = await context.authenticate(request);
  assertOwnOrigin(request, caller);
  const { owner, name, '*': rest = '' } = request.params as { owner: string; name: string; '*'?: string };
  const address = readAddress(owner, name, rest);
  if (address === null) throw new PalestraError('route_not_found');
  // The launcher of NeMo Gym asks this without a key.
  if (method === 'GET' && address.operation === '') return void (await reply.send({ status: 'ok' }));
  if (caller === null) throw new PalestraError('unauthorized');
  const handler = method === 'GET' ? GET[address.operation] : (POST[address.operation] ?? callTool);
  if (handler === undefined || address.operation === '') throw new PalestraError('method_not_allowed');
  countRequest(request);
  const body = parseBody(Buffer.isBuffer(request.body) ? request.body : null) ?? {};
  const json = await handler({ request, reply, caller, address, body }, context);
  if (json !== undefined) await reply.type('application/json').send(stringifyJson(json));
}

/** Opens the session. A request that names it may be repeated and gets the same session. */
async function seedSession({ request, reply, caller, address, body }: Incoming, context: ProtocolContext): Promise<JsonObject | undefined> {
  const { engine, directory, routing } = context;
  const seed = readSeed(body, address);
  // A request of another process names its session by the cookie; a cookie of a client is that of an earlier episode.
  const known = seed.sessionId ?? (request.headers[FORWARDED] === undefined ? null : cookieOf(request));
  const sid = known === null ? newUuid() : await engine.sidOf(caller, known);
  if (known !== null && (await routing.elsewhere(request, reply, caller, sid))) return undefined;
  const hosted = await directory.resolve(`${address.owner}/${address.name}`, caller);
  const disconnected = new AbortController();
  onDelivery(request, reply, (delivery) => {
    if (delivery !== 'undelivered') return;
    disconnected.abort(new PalestraError('call_abandoned'));
    // No client can name a session whose id was not chosen. A client that chose the id repeats the request.
    if (seed.sessionId === null) void engine.delete(caller, sid).catch((error: unknown) => context.onBackgroundError(error, sid));
    else void engine.markCreateUndelivered(sid);
  });
  try {
    await open(caller, sid, hosted, seed, disconnected.signal, context);
  } catch (error) {
    if (!(error instanceof PalestraError) || error.code !== 'session_moved') throw error;
    request.headers.cookie = `${COOKIE}=${sid}`;
    if (!(await routing.elsewhere(request, reply, caller, sid))) throw error;
    return undefined;
  }
  // For every path: an agent passes the cookie through its own routes.
  void reply.header('set-cookie', `${COOKIE}=${sid}; Path=/; HttpOnly; SameSite=Lax`);
  return seed.sessionId === null ? {} : { resources_session_id: seed.sessionId };
}

async function open(
  caller: Caller,
  sid: string,
  hosted: HostedEnvironment,
  { sessionId, variant, split, index, recording }: SeedRequest,
  signal: AbortSignal,
  { engine }: ProtocolContext,
): Promise<void> {
  const name = variant?.toLowerCase() ?? null;
  if (name !== null && !(await hosted.backend.environments(AbortSignal.timeout(DISCOVERY_DEADLINE_MS))).includes(name)) {
    throw new PalestraError('unknown_variant', { detail: `unknown environment '${name}'` });
  }
  const options = { secrets: null, recording };
  await engine.reserve(caller, { sid, hosted, ...options });
  const task = { kind: 'index', split, index } as const;
  try {
    await engine.create(caller, {
      sid,
      resolve: async () => hosted,
      variant: async () => name,
      task,
      toolsetName: null,
      signal,
      ...options,
    });
    // Waits for the setup: an episode that cannot begin is an error here, not a reward later.
    await engine.prompt(caller, sid);
  } catch (error) {
    const code = error instanceof PalestraError ? error.code : null;
    if (code === 'session_exists' && sessionId !== null) return assertSame(await engine.environmentOf(caller, sid), hosted);
    // A failed session must not keep a slot.
    if (code !== 'session_moved' && code !== 'session_exists') await engine.delete(caller, sid);
    throw error;
  }
}

function assertSame(found: HostedEnvironment | null, { owner, name }: { owner: string; name: string }): void {
  if (found?.owner === owner && found.name === name) return;
  throw new PalestraError('session_not_found', { detail: 'This environment has no such session.' });
}

/** Runs the tool once; a client that lost its connection and repeats the call joins it (ADR 7). The text of the answer is for the model. */
async function callTool({ request, reply, caller, address, body }: Incoming, context: ProtocolContext): Promise<undefined> {
  const { engine } = context;
  const sid = requireSession(request);
  if (await context.routing.elsewhere(request, reply, caller, sid)) return;
  assertSame(await engine.environmentOf(caller, sid), unversioned(address));
  // Agents send what the model wrote.
  if (!isObject(body)) throw new PalestraError('invalid_body', { detail: 'The arguments of a tool are a JSON object.' });
  const call = await engine.call(caller, sid, { tool: address.operation, input: body, taskId: null });
  const stream = call.stream();
  onDelivery(request, reply, (delivery) => (delivery === 'undelivered' ? stream.undelivered() : stream.delivered()));
  if (request.headers[FORWARDED] !== undefined && call.taskId !== null) void reply.header(CALL_HEADER, call.taskId);
  const text = resultOf(await call.outcome());
  await reply.type('text/plain; charset=utf-8').send(text);
}

/** The text of a tool's answer. Throws its error, which agents show to the model like any answer. */
function resultOf(outcome: CallOutcome): string {
  if (outcome.type === 'refused') throw errorOfOutcome(outcome);
  if (outcome.type === 'tool_failed') throw new PalestraError('environment_failed', { detail: outcome.message });
  const { error, output } = parseJson(outcome.text) as JsonObject;
  if (!outcome.ok) throw new PalestraError('invalid_body', { detail: String(error ?? 'The environment refused the call.') });
  const blocks = isObject(output) && Array.isArray(output['blocks']) ? output['blocks'] : [];
  return blocks.map((block) => textOf(block as JsonObject)).join('\n');
}

const textOf = ({ type, text }: JsonObject): string => (typeof text === 'string' ? text : `[${String(type)}]`);

/** The reward. The session ends when the client has read it, because agents that send their row have no request for that. */
async function verify({ request, reply, caller, address, body }: Incoming, context: ProtocolContext): Promise<JsonObject | undefined> {
  const sid = requireSession(request);
  if (await context.routing.elsewhere(request, reply, caller, sid)) return undefined;
  const row = isObject(body) ? body : {};
  const verdict = await judge(caller, sid, address, row, context);
  onDelivery(request, reply, (delivery) => {
    if (delivery !== 'delivered') return;
    void context.engine.delete(caller, sid).catch((error: unknown) => context.onBackgroundError(error, sid));
  });
  return { ...row, ...verdict, palestra_session_id: sid };
}

async function judge(caller: Caller, sid: string, address: NemoGymAddress, row: JsonObject, context: ProtocolContext): Promise<Verdict> {
  assertSame(await context.engine.environmentOf(caller, sid), unversioned(address));
  const session = await requireStored(caller, sid, context);
  const message = lastMessage(row['response']);
  // A session that is ready may be stored as starting for a moment.
  if (message === null || !session.isLive || session.state === 'finished') return verdictOf(session);
  try {
    await callTerminalTool(caller, sid, message, context);
  } catch (error) {
    if (!(error instanceof PalestraError)) throw error;
    const { code, message: detail } = error;
    return maskedVerdict({ failureClass: classifyCode(code), code, detail });
  }
  return verdictOf(await requireStored(caller, sid, context));
}

async function requireStored(caller: Caller, sid: string, { storedSession }: ProtocolContext): Promise<StoredSession> {
  const session = await storedSession(caller, sid);
  if (session === null) throw new PalestraError('session_not_found');
  return session;
}

/** Gives the last message to the tool that takes it, in environments that have one. */
async function callTerminalTool(caller: Caller, sid: string, message: string, { engine }: ProtocolContext): Promise<void> {
  const { terminal_tool: terminal = null } = await engine.taskTools(caller, sid);
  if (terminal === null) return;
  await engine.callWithoutResume(caller, sid, terminal.name, terminal.arg === null ? {} : { [terminal.arg]: message });
}

/** Ends a session. An id that was never seeded is used up, so that a seed that arrives later does not open it. */
async function closeSession(
  { request, reply, caller, address, body }: Incoming,
  context: ProtocolContext,
): Promise<JsonObject | undefined> {
  const { engine } = context;
  const chosen = readSessionId(body);
  const sid = chosen === null ? requireSession(request) : await engine.sidOf(caller, chosen);
  if (await context.routing.elsewhere(request, reply, caller, sid)) return undefined;
  if (chosen !== null) {
    const hosted = await context.directory.resolve(`${address.owner}/${address.name}`, caller);
    try {
      await engine.reserve(caller, { sid, hosted, secrets: null, recording: null });
    } catch (error) {
      // 410: it has ended.
      if (!(error instanceof PalestraError) || error.status !== 410) throw error;
    }
  }
  await engine.delete(caller, sid);
  return chosen === null ? {} : { resources_session_id: chosen };
}

const unversioned = ({ owner, name }: NemoGymAddress) => ({ owner, name: name.replace(/@\d+$/, '') });

function requireSession(request: FastifyRequest): string {
  const sid = cookieOf(request);
  if (sid !== null) return sid;
  throw new PalestraError('session_id_required', { detail: `Send the cookie ${COOKIE} that seed_session set.` });
}

function cookieOf({ headers }: FastifyRequest): string | null {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
  const value = pairs.find(([name]) => name === COOKIE)?.[1]?.replace(/^"|"$/g, '');
  return value === undefined || !/^[\w-]{1,128}$/.test(value) ? null : value;
}
