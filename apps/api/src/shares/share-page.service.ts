import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { cookieOf } from '../accounts/cookies.ts';
import { type LoadedShare, SHARE_COOKIE, ShareAccess } from '../accounts/share-access.ts';
import { Database } from '../platform/database/database.ts';
import { PLAIN_STYLE_SOURCE } from '../platform/http/plain-page.ts';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { CLOCK, PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { ShareImages } from './share-image.service.ts';
import { sharePage, sharePageGone } from './share-page.ts';
import type { Preview } from './share-preview.service.ts';
import { haveRollouts, presentScope, selectRunNames } from './share-scope.ts';

const HEADERS = {
  'content-security-policy': `default-src 'none'; style-src ${PLAIN_STYLE_SOURCE}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'cache-control': 'no-store',
};

export interface SharePage {
  status: 200 | 404;
  type: string;
  headers: Record<string, string>;
  body: string | Buffer;
}

const HTML = 'text/html; charset=utf-8';
const GONE: SharePage = { status: 404, type: HTML, headers: HEADERS, body: sharePageGone() };

/** Opens share links in a browser. */
@Injectable()
export class SharePageService {
  constructor(
    private readonly access: ShareAccess,
    private readonly images: ShareImages,
    private readonly database: Database,
    private readonly rates: UnauthenticatedRateLimit,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  /** What the link shows that this browser opened last. Throws `share_not_found`. */
  async opened(request: FastifyRequest) {
    const share = await this.access.loadOpened(request);
    const scope = share && (await this.#scopeOf(share));
    if (!share || !scope) throw new PalestraError('share_not_found');
    return { ...scope, org: share.org.name };
  }

  /** The page of a link: it describes what the link shows for previews and redirects a browser to it. */
  async open(token: string, request: FastifyRequest): Promise<SharePage> {
    const share = await this.#load(token, request);
    const [scope, preview] = share === null ? [null, null] : await Promise.all([this.#scopeOf(share), this.#previewOf(share)]);
    if (!share || !scope || !preview) return GONE;
    const seconds = (share.expiresAt.getTime() - this.clock.now()) / 1000;
    const headers = { ...HEADERS, 'set-cookie': cookieOf(SHARE_COOKIE, token, seconds, this.origin.url) };
    const url = `${this.origin.url}/share/${token}`;
    return { status: 200, type: HTML, headers, body: sharePage(preview, { target: scope.path, url }) };
  }

  /** The image of the link's preview. Sets no cookie. */
  async image(token: string, request: FastifyRequest): Promise<SharePage> {
    const share = await this.#load(token, request);
    const png = share && (await this.#scopeOf(share)) && (await this.images.image(share));
    return png ? { status: 200, type: 'image/png', headers: HEADERS, body: png } : GONE;
  }

  /** A reader reaches the page also while too many previews are being made: then the preview has no figures. */
  async #previewOf(share: LoadedShare): Promise<Preview | null> {
    try {
      return await this.images.preview(share);
    } catch (error) {
      if (!(error instanceof PalestraError && error.code === 'capacity_exhausted')) throw error;
      return { title: 'Shared page', description: `Shared by ${share.org.name}`, chart: { lines: [] } };
    }
  }

  /** Null for an unknown link, which counts as a failure of its address. */
  async #load(token: string, request: FastifyRequest): Promise<LoadedShare | null> {
    const share = await this.access.load(token);
    if (share === null) await this.rates.countFailure(request.raw);
    return share;
  }

  /** Null when one of its runs or rollouts was deleted. */
  async #scopeOf(share: LoadedShare) {
    const { pool } = this.database;
    if (!(await haveRollouts(pool, share.orgId, share.rolloutIds))) return null;
    return presentScope(share, share.org.name, await selectRunNames(pool, share.orgId, share.runIds));
  }
}
