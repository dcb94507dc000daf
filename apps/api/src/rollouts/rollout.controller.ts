import { Body, Controller, Delete, Get, Headers, Param, Post, Query, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import {
  deletedSchema,
  ingestBodySchema,
  ingestReceiptSchema,
  messagePageQuerySchema,
  messagePageSchema,
  rolloutViewSchema,
} from '@palestra/protocol/schemas';
import type { FastifyReply } from 'fastify';
import type { Caller } from '@palestra/session';
import { z } from 'zod';
import { Audited } from '../accounts/audit/audited.decorator.ts';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Shareable } from '../accounts/shareable.decorator.ts';
import { guestRollout } from './guest-answers.ts';
import { INGEST_BODY_LIMIT } from '../platform/http/body.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { onClosed } from '../platform/http/on-closed.ts';
import { ReadsRollout } from './rollout-freshness.ts';
import { IngestService } from '../store/ingest/ingest.service.ts';
import { returnPreference } from '../store/ingest/return-preference.ts';
import { RolloutService } from './rollout.service.ts';

@Controller('v1/rollouts')
@RequireScope('rollouts')
export class RolloutController {
  constructor(
    private readonly ingest: IngestService,
    private readonly rollouts: RolloutService,
  ) {}

  @Post()
  @RouteConfig({ rawBody: true, bodyLimit: INGEST_BODY_LIMIT, anyDepth: true })
  @Api({
    summary: 'Store rollout events',
    body: ingestBodySchema,
    response: ingestReceiptSchema,
    errors: ['ingest_overloaded', 'invalid_json'],
  })
  store(
    @CurrentCaller() caller: Caller,
    @Body() body: Buffer | undefined,
    @Headers('prefer') prefer: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const preference = returnPreference(prefer);
    if (preference !== null) void reply.header('preference-applied', `return=${preference}`);
    return this.ingest.ingest(caller, body ?? Buffer.alloc(0), preference === 'representation');
  }

  @Get(':id')
  @ReadsRollout()
  @Shareable('rollout', guestRollout)
  @Api({
    summary: 'A rollout with every message',
    response: rolloutViewSchema,
    errors: ['rollout_not_found', 'too_expensive', 'capacity_exhausted'],
  })
  get(@CurrentCaller() caller: Caller, @Param('id') id: string, @Res({ passthrough: true }) { raw }: FastifyReply) {
    return this.rollouts.get(caller, id, (release) => onClosed(raw, release));
  }

  @Get(':id/messages')
  @ReadsRollout()
  @Shareable('rollout')
  @Api({
    summary: 'Messages of a rollout by index',
    query: messagePageQuerySchema,
    response: messagePageSchema,
    errors: ['rollout_not_found'],
  })
  messages(
    @CurrentCaller() caller: Caller,
    @Param('id') id: string,
    @Query({ schema: messagePageQuerySchema }) query: z.infer<typeof messagePageQuerySchema>,
  ) {
    return this.rollouts.messages(caller, id, query);
  }

  @Audited('rollout.delete')
  @Delete(':id')
  @Api({ summary: 'Erase a rollout', response: deletedSchema, errors: ['rollout_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.rollouts.delete(caller, id);
    return { deleted: true };
  }
}
