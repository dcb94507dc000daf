import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '@palestra/kit';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { CLOCK } from '../platform/tokens.ts';
import { readCookie } from './cookies.ts';
import { hashToken } from './secret-token.ts';

/** Name of the cookie with the token of the last opened share link. */
export const SHARE_COOKIE = 'palestra_share';

/** Access of a browser that opened a share link: one rollout, read-only, until the link ends. */
@Injectable()
export class ShareAccess {
  constructor(
    private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Loads a link; null when it is unknown, deleted or expired. */
  async load(token: string) {
    const row = await this.database.prisma.shareLink.findUnique({ where: { hash: hashToken(token) }, include: { org: true } });
    return row === null || row.expiresAt.getTime() <= this.clock.now() ? null : row;
  }

  /** Loads the link that this browser opened last; null without a valid one. */
  async loadOpened(request: FastifyRequest) {
    const token = readCookie(request.headers.cookie, SHARE_COOKIE);
    return token === null ? null : this.load(token);
  }

  /** A caller of the rollout's organisation that may read only this rollout; null when the link shows another one, or none. */
  async callerFor(request: FastifyRequest): Promise<Caller | null> {
    const { id } = request.params as { id?: string };
    const share = id === undefined ? null : await this.loadOpened(request);
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

  /** Whether the organisation has a rollout with the id in the path. Plan: Index Only Scan using rollout_heads_org_id_id_key. */
  async hasRollout(orgId: string, request: FastifyRequest): Promise<boolean> {
    const { id } = request.params as { id: string };
    const { rowCount } = await this.database.pool.query('SELECT FROM rollout_heads WHERE org_id = $1 AND id = $2', [
      orgId,
      id.toLowerCase(),
    ]);
    return rowCount === 1;
  }
}
