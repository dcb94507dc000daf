import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { cookieOf } from '../accounts/cookies.ts';
import { SHARE_COOKIE, ShareAccess } from '../accounts/share-access.ts';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { CLOCK, PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { type RolloutSnapshot, RolloutSnapshots } from '../rollouts/rollout-snapshot.ts';
import { presentHeader } from '../rollouts/rollout.presenter.ts';
import { sharePage, sharePageGone } from './share-page.ts';

type Share = NonNullable<Awaited<ReturnType<ShareAccess['load']>>>;

const PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'cache-control': 'no-store',
};

export interface SharePage {
  status: 200 | 404;
  headers: Record<string, string>;
  html: string;
}

/** Opens share links in a browser. */
@Injectable()
export class SharePageService {
  constructor(
    private readonly access: ShareAccess,
    private readonly snapshots: RolloutSnapshots,
    private readonly rates: UnauthenticatedRateLimit,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  /** The rollout of the link that this browser opened last. Throws `share_not_found`. */
  async opened(request: FastifyRequest) {
    const share = await this.access.loadOpened(request);
    if (share === null) throw new PalestraError('share_not_found');
    return { rollout: share.rolloutId, message: share.messageIndex, expires_at: share.expiresAt.toISOString() };
  }

  /** The page of a link: it describes the rollout for link previews and redirects a browser to it. */
  async open(token: string, request: FastifyRequest): Promise<SharePage> {
    const share = await this.access.load(token);
    if (share === null) await this.rates.countFailure(request.raw);
    const snapshot = share && (await this.#load(share));
    if (!share || !snapshot) return { status: 404, headers: PAGE_HEADERS, html: sharePageGone() };
    const { head, record, orgName } = snapshot;
    const seconds = (share.expiresAt.getTime() - this.clock.now()) / 1000;
    const target = `/rollout/${share.rolloutId}${share.messageIndex === null ? '' : `#m-${share.messageIndex}`}`;
    const headers = { ...PAGE_HEADERS, 'set-cookie': cookieOf(SHARE_COOKIE, token, seconds, this.origin.url) };
    return { status: 200, headers, html: sharePage(presentHeader(head, record, orgName, []), target) };
  }

  /** Null when the rollout was erased, or its run is being erased. */
  async #load(share: Share): Promise<RolloutSnapshot | null> {
    const guest = { userId: share.userId, orgId: share.orgId, orgName: share.org.name, keyId: null, scopes: ['rollouts'] };
    const caller = { ...guest, anonymous: true, maxSessions: { key: 0, org: 0 } };
    return this.snapshots.load(caller, share.rolloutId).catch((error: unknown) => {
      if (error instanceof PalestraError && error.code === 'rollout_not_found') return null;
      throw error;
    });
  }
}
