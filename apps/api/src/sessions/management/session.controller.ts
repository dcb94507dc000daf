import { Body, Controller, Delete, Get, Header, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import {
  forkSessionSchema,
  openSessionSchema,
  sessionCallListQuerySchema,
  sessionCallListSchema,
  sessionCallSchema,
  sessionEventsQuerySchema,
  sessionForkSchema,
  sessionListQuerySchema,
  sessionListSchema,
  sessionStateSchema,
  sessionViewSchema,
} from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  type ErrorCode,
  type ForkSession,
  type SessionCallListQuery,
  type SessionEventsQuery,
  type SessionListQuery,
  stringifyJson,
} from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { onClosed } from '../../platform/http/on-closed.ts';
import { InFlight } from '../../platform/limits.ts';
import { SessionEvents } from '../events/session-events.service.ts';
import { parsePosition } from '../events/session-event-cursor.ts';
import { streamSession } from '../events/session-events.reply.ts';
import { openSession } from './session-opening.ts';
import { SessionServer } from '../server/session-server.ts';
import { SessionService } from './session.service.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const NOT_FOUND: ErrorCode[] = ['session_not_found'];
const lastEventHeader = z.object({ 'last-event-id': z.string().optional() });
/** Errors of opening an episode. */
const OPENING: ErrorCode[] = [
  'deployment_not_found',
  'unknown_variant',
  'invalid_split',
  'invalid_index',
  'unknown_toolset',
  'session_exists',
  'session_moved',
  'setup_timeout',
  'environment_failed',
  'environment_starting',
  'backend_unreachable',
  'backend_invalid',
  'backend_timeout',
];

/** `/v1/sessions`: sessions of the caller's organisation. Clients play their episodes in one of the protocols. */
@Controller('v1/sessions')
@RequireScope('sessions')
export class SessionController {
  constructor(
    @Inject(SessionService) private readonly sessions: SessionService,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(SessionEvents) private readonly events: SessionEvents,
    @Inject(InFlight) private readonly inFlight: InFlight,
  ) {}

  @Get()
  @Api({ summary: 'Sessions, newest first', query: sessionListQuerySchema, response: sessionListSchema, errors: ['invalid_request'] })
  @Header('content-type', JSON_TYPE)
  async list(@CurrentCaller() caller: Caller, @Query({ schema: sessionListQuerySchema }) query: SessionListQuery) {
    return stringifyJson(await this.sessions.list(caller, query));
  }

  @Post()
  @RouteConfig({ rawBody: true, bodyLimit: SESSION_BODY_LIMIT })
  @Api({
    summary: 'Reserve and open a session in one; waits for a slot where they are limited',
    body: openSessionSchema,
    response: sessionViewSchema,
    errors: [...OPENING, 'capacity_exhausted'],
  })
  async open(
    @CurrentCaller() caller: Caller,
    @Body() body: Buffer | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    const { sessions, server } = this;
    await openSession({ caller, body, request, reply, sessions, server });
  }

  @Get(':sid')
  @Api({ summary: 'A session', response: sessionViewSchema, errors: NOT_FOUND })
  @Header('content-type', JSON_TYPE)
  async get(@CurrentCaller() caller: Caller, @Param('sid') sid: string) {
    return stringifyJson(await this.sessions.get(caller, sid));
  }

  @Get(':sid/state')
  @Api({
    summary:
      'The state of the episode: its environment’s own where that speaks OpenEnv, which may hold the answer; else what the ledger knows',
    response: sessionStateSchema,
    errors: ['session_not_found', 'session_deleted', 'session_moved', 'session_lost', 'environment_failed', 'backend_unreachable'],
  })
  async state(@CurrentCaller() caller: Caller, @Param('sid') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const sid = await this.sessions.requireSid(caller, id);
    const native = await this.sessions.hasNativeState(caller, sid);
    if (native && (await this.server.routing.elsewhere(request, reply, caller, sid))) return;
    await reply.type(JSON_TYPE).send(stringifyJson(await this.sessions.state(caller, sid, native)));
  }

  @Get(':sid/calls')
  @Api({ summary: 'The call ledger of a session', query: sessionCallListQuerySchema, response: sessionCallListSchema, errors: NOT_FOUND })
  @Header('content-type', JSON_TYPE)
  async calls(
    @CurrentCaller() caller: Caller,
    @Param('sid') sid: string,
    @Query({ schema: sessionCallListQuerySchema }) query: SessionCallListQuery,
  ) {
    return stringifyJson(await this.sessions.calls(caller, sid, query));
  }

  @Get(':sid/calls/:taskId')
  @Api({ summary: 'One call with all of its input and result', response: sessionCallSchema, errors: NOT_FOUND })
  @Header('content-type', JSON_TYPE)
  async call(@CurrentCaller() caller: Caller, @Param('sid') sid: string, @Param('taskId') taskId: string) {
    return stringifyJson(await this.sessions.call(caller, sid, taskId));
  }

  @Get(':sid/events')
  @Api({
    summary:
      'What happens to a session, live; resumes by Last-Event-ID. With its calls over one WebSocket: `/v1/sessions/{sid}/socket`, docs/sessions.md',
    query: sessionEventsQuerySchema,
    stream: { session: sessionViewSchema, call: sessionCallSchema, end: sessionViewSchema },
    headers: lastEventHeader,
    errors: [...NOT_FOUND, 'limit_reached'],
  })
  async follow(
    @CurrentCaller() caller: Caller,
    @Param('sid') id: string,
    @Query({ schema: sessionEventsQuerySchema }) { after }: SessionEventsQuery,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    const sid = await this.sessions.requireSid(caller, id);
    const { events, sessions } = this;
    const last = parsePosition(request.headers['last-event-id'] as string | undefined);
    const from = last ?? (after === undefined ? await events.now(sid) : { version: 0, floor: after });
    onClosed(reply.raw, this.inFlight.enter('streams', caller));
    streamSession(reply, { events, sid, from, view: () => sessions.get(caller, sid) });
  }

  @Delete(':sid')
  @Api({
    summary: 'End any session of the organisation and run its teardown',
    response: sessionViewSchema,
    errors: ['session_not_found', 'session_moved'],
  })
  async end(@CurrentCaller() caller: Caller, @Param('sid') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const sid = await this.sessions.requireSid(caller, id);
    if (await this.server.routing.elsewhere(request, reply, caller, sid)) return;
    await reply.type(JSON_TYPE).send(stringifyJson(await this.sessions.end(caller, sid)));
  }

  @Post(':sid/fork')
  @Api({
    summary: 'Open a session that begins with the first calls of this one, replayed and checked',
    body: forkSessionSchema,
    response: sessionForkSchema,
    errors: ['session_not_found', 'session_moved', 'not_deterministic', 'session_diverged', 'session_lost', 'invalid_request'],
  })
  async fork(
    @CurrentCaller() caller: Caller,
    @Param('sid') id: string,
    @Body({ schema: forkSessionSchema }) body: ForkSession,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    const sid = await this.sessions.requireSid(caller, id);
    if (await this.server.routing.elsewhere(request, reply, caller, sid)) return;
    await reply.type(JSON_TYPE).send(stringifyJson(await this.sessions.fork(caller, sid, body)));
  }
}
