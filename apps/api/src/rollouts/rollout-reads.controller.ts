import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import {
  messageBodyQuerySchema,
  rolloutBesideQuerySchema,
  rolloutBesideSchema,
  rolloutCallsSchema,
  rolloutDiffQuerySchema,
  rolloutDiffSchema,
  rolloutHeaderSchema,
  rolloutOutlineSchema,
} from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import type { z } from 'zod';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Shareable } from '../accounts/shareable.decorator.ts';
import { guestCalls, guestDiff, guestHeader } from './guest-answers.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { CacheByResponse } from '../platform/http/freshness.ts';
import { ReadsRollout } from './rollout-freshness.ts';
import { sendRaw } from './raw-body.ts';
import { RolloutBodyService } from './rollout-body.service.ts';
import { RolloutReadsService } from './rollout-reads.service.ts';
import { OfRollout, type RolloutSnapshot } from './rollout-snapshot.ts';

@Controller('v1')
@RequireScope('rollouts')
export class RolloutReadsController {
  constructor(
    private readonly reads: RolloutReadsService,
    private readonly bodies: RolloutBodyService,
  ) {}

  @Get('rollouts/:id/header')
  @ReadsRollout()
  @Shareable('rollout', guestHeader)
  @Api({ summary: 'A rollout without its messages, and its neighbours', response: rolloutHeaderSchema, errors: ['rollout_not_found'] })
  header(@OfRollout() rollout: RolloutSnapshot) {
    return this.reads.header(rollout);
  }

  @Get('rollouts/:id/beside')
  @ReadsRollout()
  @Api({
    summary: 'Rollouts before and after this one in a list of its run',
    query: rolloutBesideQuerySchema,
    response: rolloutBesideSchema,
    errors: ['rollout_not_found', 'invalid_query', 'too_expensive', 'capacity_exhausted'],
  })
  beside(
    @OfRollout() rollout: RolloutSnapshot,
    @Query({ schema: rolloutBesideQuerySchema }) query: z.infer<typeof rolloutBesideQuerySchema>,
  ) {
    return this.reads.beside(rollout, query);
  }

  @Get('rollouts/:id/outline')
  @ReadsRollout()
  @Shareable('rollout')
  @Api({ summary: 'Messages of a rollout as columns, without texts', response: rolloutOutlineSchema, errors: ['rollout_not_found'] })
  outline(@OfRollout() rollout: RolloutSnapshot) {
    return this.reads.outline(rollout);
  }

  @Get('rollouts/:id/calls')
  @ReadsRollout()
  @Shareable('rollout', guestCalls)
  @Api({
    summary: 'Latency and failure of calls, from the session ledger',
    response: rolloutCallsSchema,
    errors: ['rollout_not_found'],
  })
  calls(@OfRollout() rollout: RolloutSnapshot) {
    return this.reads.calls(rollout);
  }

  @Get('rollouts/:id/messages/:index/body')
  @ReadsRollout()
  @Shareable('rollout')
  @Api({
    summary: 'The whole text of a message; supports Range',
    query: messageBodyQuerySchema,
    text: true,
    errors: ['rollout_not_found', 'message_not_found', 'range_not_satisfiable'],
  })
  async body(
    @OfRollout() rollout: RolloutSnapshot,
    @Param('index') index: string,
    @Query({ schema: messageBodyQuerySchema }) query: z.infer<typeof messageBodyQuerySchema>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await sendRaw(request, reply, await this.bodies.body(rollout, index, query.event));
  }

  @Get('rollouts/:id/objects/:name')
  @ReadsRollout()
  @Shareable('rollout')
  @Api({
    summary: 'An image or another object of a rollout; supports Range',
    text: true,
    errors: ['rollout_not_found', 'file_not_found', 'range_not_satisfiable'],
  })
  async object(
    @OfRollout() rollout: RolloutSnapshot,
    @Param('name') name: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await sendRaw(request, reply, await this.bodies.object(rollout, name));
  }

  @Get('diff')
  @CacheByResponse()
  @Shareable('rollouts', guestDiff)
  @Api({
    summary: 'Actions of two rollouts, side by side',
    query: rolloutDiffQuerySchema,
    response: rolloutDiffSchema,
    errors: ['rollout_not_found', 'too_expensive', 'capacity_exhausted'],
  })
  diff(@CurrentCaller() caller: Caller, @Query({ schema: rolloutDiffQuerySchema }) query: z.infer<typeof rolloutDiffQuerySchema>) {
    return this.reads.diff(caller, query.a, query.b);
  }
}
