import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { type Clock, isUuid } from '@palestra/kit';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { CLOCK } from '../platform/tokens.ts';
import { readCookie } from './cookies.ts';
import { hashToken } from './secret-token.ts';

/** Name of the cookie with the token of the last opened share link. */
export const SHARE_COOKIE = 'palestra_share';
/** Pages send this header when they show a share link to a reader who is signed in elsewhere. It can only narrow what they may read. */
const GUEST_HEADER = 'x-palestra-guest';

/**
 * What a shareable route reads: the rollout `:id`, figures of the run in the path, the rollouts of that run, the compared `runs` or the
 * compared rollouts `a` and `b` of the query string.
 */
export type SharedRead = 'rollout' | 'run' | 'list' | 'runs' | 'rollouts';

export type LoadedShare = NonNullable<Awaited<ReturnType<ShareAccess['load']>>>;

declare module 'fastify' {
  interface FastifyRequest {
    /** The link by which this request is read; absent for members. */
    share?: LoadedShare;
  }
}

/** Access of a browser that opened a share link: what the link covers, read-only, until the link ends. */
@Injectable()
export class ShareAccess {
  constructor(
    private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Loads a link; null when it is unknown, deleted or expired. Nothing is cached, so that a link ends at once on every replica. */
  async load(token: string) {
    const row = await this.database.prisma.shareLink.findUnique({ where: { hash: hashToken(token) }, include: { org: true } });
    return row === null || row.expiresAt.getTime() <= this.clock.now() ? null : row;
  }

  /** Loads the link that this browser opened last; null without a valid one. */
  async loadOpened(request: FastifyRequest) {
    const token = readCookie(request.headers.cookie, SHARE_COOKIE);
    return token === null ? null : this.load(token);
  }

  /** The opened link if it covers what the request reads, otherwise null. */
  async shareFor(request: FastifyRequest, read: SharedRead): Promise<LoadedShare | null> {
    const share = await this.loadOpened(request);
    return share !== null && (await this.#covers(share, request, read)) ? share : null;
  }

  /** A caller of the organisation that shares it. Only routes that check what the link covers may get it. */
  callerOf(share: LoadedShare): Caller {
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

  /** Limits the query string of a list to what the link covers: the filter is that of the link, whatever the request says. */
  restrict(share: LoadedShare, request: FastifyRequest, read: SharedRead): void {
    if (read === 'list') request.query = { ...(request.query as object), q: share.query ?? '' };
  }

  isGuestPage(request: FastifyRequest): boolean {
    return request.headers[GUEST_HEADER] !== undefined;
  }

  async #covers(share: LoadedShare, request: FastifyRequest, read: SharedRead): Promise<boolean> {
    const params = request.params as { id?: string; run?: string };
    const query = request.query as Record<string, unknown>;
    switch (read) {
      case 'rollout':
        return this.#coversRollout(share, params.id?.toLowerCase() ?? '');
      case 'run':
        return (share.kind === 'run' || share.kind === 'runs') && this.#coversRuns(share, [params.run ?? params.id]);
      case 'list':
        return (share.kind === 'query' || (share.kind === 'run' && share.withRollouts)) && this.#coversRuns(share, [params.id]);
      case 'runs':
        return share.kind === 'runs' && this.#coversRuns(share, listOf(query['runs']));
      case 'rollouts':
        return share.kind === 'rollouts' && [query['a'], query['b']].every((id) => share.rolloutIds.includes(String(id).toLowerCase()));
    }
  }

  /** The rollouts of a run with rollouts count, but not yet whether they match the query of the link: see rollout-freshness.ts. */
  async #coversRollout(share: LoadedShare, id: string): Promise<boolean> {
    if (share.rolloutIds.includes(id)) return true;
    if (!share.withRollouts || !isUuid(id)) return false;
    return this.#exists(
      `SELECT FROM rollout_heads h JOIN runs r ON r.seq = h.run_seq
       WHERE h.org_id = $1 AND h.id = $2 AND r.org_id = $1 AND r.id = ANY($3::uuid[]) AND r.deleted_at IS NULL`,
      [share.orgId, id, share.runIds],
    );
  }

  /** Guests name runs by id. A route would take the id of a deleted run for the name of another run, so the runs must exist. */
  async #coversRuns(share: LoadedShare, ids: readonly unknown[]): Promise<boolean> {
    const asked = [...new Set(ids.map((id) => String(id).toLowerCase()))];
    if (asked.length === 0 || !asked.every((id) => share.runIds.includes(id))) return false;
    return this.#exists(
      `SELECT FROM (SELECT count(*) AS found FROM runs WHERE org_id = $1 AND id = ANY($2::uuid[]) AND deleted_at IS NULL) n WHERE found = $3`,
      [share.orgId, asked, asked.length],
    );
  }

  /** Plans: Index Scan using rollout_heads_org_id_id_key; Index Scan using the ids of runs. */
  async #exists(sql: string, values: unknown[]): Promise<boolean> {
    return (await this.database.pool.query(sql, values)).rowCount === 1;
  }

  /** Whether the organisation has a rollout with the id in the path. Plan: Index Only Scan using rollout_heads_org_id_id_key. */
  async hasRollout(orgId: string, request: FastifyRequest): Promise<boolean> {
    const { id } = request.params as { id: string };
    return this.#exists('SELECT FROM rollout_heads WHERE org_id = $1 AND id = $2', [orgId, id.toLowerCase()]);
  }
}

/** As routes read a repeated or comma-separated parameter. */
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : typeof value === 'string' ? value.split(',') : []);
