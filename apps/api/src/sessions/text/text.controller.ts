import { Body, Controller, Delete, Get, Inject, Param, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import {
  openTextSchema,
  textClosedSchema,
  textMetricsSchema,
  textSessionSchema,
  textSessionViewSchema,
  textStepSchema,
  textStepViewSchema,
} from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, type JsonObject, stringifyJson, type TextStepBody } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { CurrentCaller, RequireScope } from '../../accounts/caller.decorator.ts';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { Api } from '../../platform/http/api.decorator.ts';
import { SessionServer } from '../server/session-server.ts';
import { openTextSession } from './text-opening.ts';
import { TextService } from './text.service.ts';

const GONE: ErrorCode[] = ['session_not_found', 'session_deleted', 'session_expired', 'session_lost', 'session_moved'];
const OPENING: ErrorCode[] = [
  'deployment_not_found',
  'unknown_variant',
  'invalid_split',
  'invalid_index',
  'unknown_toolset',
  'session_exists',
  'session_moved',
  'setup_failed',
  'setup_timeout',
  'environment_failed',
  'environment_starting',
  'backend_unreachable',
  'backend_invalid',
  'backend_timeout',
  'capacity_exhausted',
  'invalid_request',
];

/** `/v1/text-sessions`: SkyRL-Gym's `BaseTextEnv` (docs/text.md). */
@Controller('v1/text-sessions')
@RequireScope('sessions')
export class TextController {
  constructor(
    @Inject(TextService) private readonly texts: TextService,
    @Inject(SessionServer) private readonly server: SessionServer,
  ) {}

  @Post()
  @RouteConfig({ rawBody: true, bodyLimit: SESSION_BODY_LIMIT })
  @Api({
    summary: 'Open a session that is played by the texts of a model; waits for a slot where they are limited',
    body: openTextSchema,
    response: textSessionSchema,
    errors: OPENING,
  })
  async open(
    @CurrentCaller() caller: Caller,
    @Body() body: Buffer | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    const { texts, server } = this;
    await openTextSession({ caller, body, request, reply, texts, server });
  }

  @Post(':id/step')
  @Api({
    summary: 'One turn: what the model wrote; the same turn again joins the running one, or gets its outcome',
    body: textStepSchema,
    response: textStepViewSchema,
    errors: [...GONE, 'turn_conflict', 'turn_running', 'backend_unreachable', 'backend_timeout', 'call_timeout'],
  })
  async step(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Body({ schema: textStepSchema }) body: TextStepBody,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    await this.#answer(caller, id, request, reply, () => this.texts.step(caller, id, body));
  }

  @Get(':id')
  @Api({ summary: 'A text session; asking keeps it alive', response: textSessionViewSchema, errors: GONE })
  async get(@CurrentCaller() caller: Caller, @Param('id') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    await this.#answer(caller, id, request, reply, () => this.texts.get(caller, id));
  }

  @Get(':id/metrics')
  @Api({ summary: 'What get_metrics answers in SkyRL', response: textMetricsSchema, errors: ['session_not_found', 'session_moved'] })
  async metrics(@CurrentCaller() caller: Caller, @Param('id') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    await this.#answer(caller, id, request, reply, () => this.texts.metrics(caller, id));
  }

  @Delete(':id')
  @Api({
    summary: 'End a text session and run its teardown; again is fine',
    response: textClosedSchema,
    errors: ['session_not_found', 'session_moved'],
  })
  async close(@CurrentCaller() caller: Caller, @Param('id') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    await this.#answer(caller, id, request, reply, () => this.texts.close(caller, id));
  }

  /** Answers here, or forwards the request to the process that serves the session. */
  async #answer(
    caller: Caller,
    id: string,
    request: FastifyRequest,
    reply: FastifyReply,
    answer: () => Promise<JsonObject>,
  ): Promise<void> {
    if (await this.server.routing.elsewhere(request, reply, caller, id)) return;
    await reply.type('application/json; charset=utf-8').send(stringifyJson(await answer()));
  }
}
