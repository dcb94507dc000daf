import { Body, Controller, Delete, Get, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import {
  createdShareSchema,
  createShareSchema,
  deletedSchema,
  openShareSchema,
  shareListQuerySchema,
  shareListSchema,
} from '@palestra/protocol/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Clock } from '@palestra/kit';
import { type CreateShare, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { z } from 'zod';
import { CurrentCaller, RequireScope } from '../accounts/caller.decorator.ts';
import { Public } from '../platform/http/public.decorator.ts';
import { cookieOf } from '../accounts/cookies.ts';
import { SHARE_COOKIE, ShareAccess } from '../accounts/share-access.ts';
import { Api } from '../platform/http/api.decorator.ts';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { CLOCK, PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { type RolloutScope, RolloutScopes } from '../rollouts/rollout-scope.ts';
import { presentHeader } from '../rollouts/rollout.presenter.ts';
import { sharePage, sharePageGone } from './share-page.ts';
import { ShareService } from './share.service.ts';

type OpenShare = NonNullable<Awaited<ReturnType<ShareAccess['open']>>>;

const HTML = 'text/html; charset=utf-8';
const PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'cache-control': 'no-store',
};

@Controller()
@RequireScope('rollouts')
export class ShareController {
  constructor(
    private readonly shares: ShareService,
    private readonly access: ShareAccess,
    private readonly scopes: RolloutScopes,
    private readonly rates: UnauthenticatedRateLimit,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  @Post('v1/shares')
  @Api({
    summary: 'Make a link that shows one rollout to whoever has it, until it expires',
    body: createShareSchema,
    response: createdShareSchema,
    errors: ['rollout_not_found'],
  })
  create(@CurrentCaller() caller: Caller, @Body({ schema: createShareSchema }) body: CreateShare) {
    return this.shares.create(caller, body);
  }

  @Get('v1/shares')
  @Api({ summary: 'Links that show rollouts of the organisation', query: shareListQuerySchema, response: shareListSchema })
  async list(@CurrentCaller() caller: Caller, @Query({ schema: shareListQuerySchema }) query: z.infer<typeof shareListQuerySchema>) {
    return { shares: await this.shares.list(caller, query.rollout) };
  }

  @Delete('v1/shares/:id')
  @Api({ summary: 'Take a link back', response: deletedSchema, errors: ['share_not_found'] })
  async delete(@CurrentCaller() caller: Caller, @Param('id') id: string) {
    await this.shares.delete(caller, id);
    return { deleted: true };
  }

  @Get('v1/shared')
  @Public()
  @Api({ summary: 'What the share link shows that this browser opened last', response: openShareSchema, errors: ['share_not_found'] })
  async opened(@Req() request: FastifyRequest) {
    const share = await this.access.opened(request);
    if (share === null) throw new PalestraError('share_not_found');
    return { rollout: share.rolloutId, message: share.messageIndex, expires_at: share.expiresAt.toISOString() };
  }

  /** The link itself: a page that says to other sites what is behind it, and leads a browser there. */
  @Get('share/:token')
  @Public()
  async open(@Param('token') token: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const share = await this.access.open(token);
    if (share === null) await this.rates.countFailure(request.raw);
    const shown = share && (await this.#shown(share));
    if (!share || !shown) return void (await reply.status(404).headers(PAGE_HEADERS).type(HTML).send(sharePageGone()));
    const { head, record, orgName } = shown;
    const seconds = (share.expiresAt.getTime() - this.clock.now()) / 1000;
    const target = `/rollout/${share.rolloutId}${share.messageIndex === null ? '' : `#m-${share.messageIndex}`}`;
    await reply
      .headers({ ...PAGE_HEADERS, 'set-cookie': cookieOf(SHARE_COOKIE, token, seconds, this.origin.url) })
      .type(HTML)
      .send(sharePage(presentHeader(head, record, orgName, []), target));
  }

  /** Null: it was erased, or its run is being erased. */
  async #shown(share: OpenShare): Promise<RolloutScope | null> {
    const guest = { userId: share.userId, orgId: share.orgId, orgName: share.org.name, keyId: null, scopes: ['rollouts'] };
    return this.scopes.open({ ...guest, anonymous: true, maxSessions: { key: 0, org: 0 } }, share.rolloutId).catch((error: unknown) => {
      if (error instanceof PalestraError && error.code === 'rollout_not_found') return null;
      throw error;
    });
  }
}
