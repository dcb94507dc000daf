import { Body, Controller, Delete, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import {
  createdShareSchema,
  createShareSchema,
  deletedSchema,
  openShareSchema,
  shareListQuerySchema,
  shareListSchema,
} from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CreateShare } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { z } from 'zod';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Public } from '../platform/http/public.decorator.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { type SharePage, SharePageService } from './share-page.service.ts';
import { ShareService } from './share.service.ts';

@Controller()
@RequireScope('rollouts')
export class ShareController {
  constructor(
    private readonly shares: ShareService,
    private readonly pages: SharePageService,
  ) {}

  @Post('v1/shares')
  @Api({
    summary: 'Create a link that shows a rollout, a run, a list or a comparison without an account, until it expires',
    body: createShareSchema,
    response: createdShareSchema,
    errors: ['rollout_not_found', 'run_not_found', 'invalid_query'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createShareSchema }) body: CreateShare) {
    return this.shares.create(caller, body);
  }

  @Get('v1/shares')
  @Api({ summary: 'Share links of the organisation', query: shareListQuerySchema, response: shareListSchema })
  async list(@CurrentCaller() caller: Caller, @Query({ schema: shareListQuerySchema }) query: z.infer<typeof shareListQuerySchema>) {
    return { shares: await this.shares.list(caller, query) };
  }

  @Delete('v1/shares/:id')
  @Api({ summary: 'Delete a share link', response: deletedSchema, errors: ['share_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.shares.delete(caller, id);
    return { deleted: true };
  }

  @Get('v1/shared')
  @Public()
  @Api({ summary: 'What the share link shows that this browser opened last', response: openShareSchema, errors: ['share_not_found'] })
  opened(@Req() request: FastifyRequest) {
    return this.pages.opened(request);
  }

  @Get('share/:token')
  @Public()
  async open(@Param('token') token: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await send(reply, await this.pages.open(token, request));
  }

  @Get('share/:token/image.png')
  @Public()
  async image(@Param('token') token: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await send(reply, await this.pages.image(token, request));
  }
}

async function send(reply: FastifyReply, { status, headers, type, body }: SharePage): Promise<void> {
  await reply.status(status).headers(headers).type(type).send(body);
}
