import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '@palestra/kit';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { CLOCK } from '../platform/tokens.ts';
import { readCookie } from './cookies.ts';
import { hashToken } from './secret-token.ts';

/** Set by opening a share link: the link's token. */
export const SHARE_COOKIE = 'palestra_share';

/** What whoever opened a share link may see: its one rollout, read-only, until the link ends. */
@Injectable()
export class ShareAccess {
  constructor(
    private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** What a link shows now; null when it is unknown, was taken back or has expired. */
  async open(token: string) {
    const row = await this.database.prisma.shareLink.findUnique({ where: { hash: hashToken(token) }, include: { org: true } });
    return row === null || row.expiresAt.getTime() <= this.clock.now() ? null : row;
  }

  /** The link that this browser opened last; null without one that holds. */
  async opened(request: FastifyRequest) {
    const token = readCookie(request.headers.cookie, SHARE_COOKIE);
    return token === null ? null : this.open(token);
  }

  /** A caller of the rollout's organisation, for a read of just that rollout; null when the link shows another one, or none. */
  async callerFor(request: FastifyRequest): Promise<Caller | null> {
    const { id } = request.params as { id?: string };
    const share = id === undefined ? null : await this.opened(request);
    if (share === null || share.rolloutId !== id!.toLowerCase()) return null;
    return {
      userId: share.userId,
      orgId: share.orgId,
      orgName: share.org.name,
      keyId: null,
      scopes: ['rollouts'],
      anonymous: true,
      maxSessions: { key: 0, org: 0 },
    };
  }

  /** Whether the organisation has a rollout of the id that the path names. Plan: Index Only Scan using rollout_heads_org_id_id_key. */
  async hasRollout(orgId: string, request: FastifyRequest): Promise<boolean> {
    const { id } = request.params as { id: string };
    const { rowCount } = await this.database.pool.query('SELECT FROM rollout_heads WHERE org_id = $1 AND id = $2', [
      orgId,
      id.toLowerCase(),
    ]);
    return rowCount === 1;
  }
}
