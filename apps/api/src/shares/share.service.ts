import { Inject, Injectable } from '@nestjs/common';
import { type Clock, isUuid } from '@palestra/kit';
import { type CreateShare, PalestraError, type Share } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { AuditLog } from '../accounts/audit/audit-log.service.ts';
import { hashToken, newToken } from '../accounts/secret-token.ts';
import { Database } from '../platform/database/database.ts';
import type { ShareLinkModel } from '../platform/generated/prisma/models.ts';
import { CLOCK, PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { canonicalQuery } from '../rollouts/rollout-query.ts';
import { RolloutService } from '../rollouts/rollout.service.ts';
import { RunService } from '../runs/run.service.ts';
import { presentScope, selectRunNames } from './share-scope.ts';

const DAY_MS = 86_400_000;
const LISTED = 500;

/** Columns of a link that say what it covers. */
type Scope = Pick<ShareLinkModel, 'kind' | 'rolloutIds' | 'runIds' | 'query' | 'withRollouts' | 'messageIndex'>;
const NOTHING: Omit<Scope, 'kind'> = { rolloutIds: [], runIds: [], query: null, withRollouts: false, messageIndex: null };

/** Links that show a rollout, a run, a list or a comparison without an account. */
@Injectable()
export class ShareService {
  constructor(
    private readonly database: Database,
    private readonly rollouts: RolloutService,
    private readonly runs: RunService,
    private readonly audit: AuditLog,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  /** Throws `rollout_not_found`, `run_not_found`, `invalid_query`. */
  async create(caller: Caller, body: CreateShare) {
    const scope = await this.#scopeOf(caller, body);
    const token = newToken();
    const now = this.clock.now();
    await this.database.prisma.shareLink.deleteMany({ where: { orgId: caller.orgId, expiresAt: { lt: new Date(now) } } });
    const expiresAt = new Date(now + body.expires_in_days * DAY_MS);
    const data = { orgId: caller.orgId, userId: caller.userId, hash: hashToken(token), ...scope, expiresAt };
    const row = await this.database.prisma.$transaction(async (transaction) => {
      const created = await transaction.shareLink.create({ data, include: { user: true } });
      const { kind, rolloutIds: rollouts, runIds: runs, query, withRollouts: with_rollouts } = scope;
      const details = { kind, rollouts, runs, query, with_rollouts, expires_at: expiresAt.toISOString() };
      await this.audit.record(caller, { action: 'share.create', targetId: created.id, details }, transaction);
      return created;
    });
    return { ...(await this.#present(caller, [row]))[0]!, url: `${this.origin.url}/share/${token}` };
  }

  async list(caller: Caller, { rollout, run }: { rollout?: string | undefined; run?: string | undefined }) {
    const rows = await this.database.prisma.shareLink.findMany({
      where: {
        orgId: caller.orgId,
        expiresAt: { gt: new Date(this.clock.now()) },
        ...(rollout && { rolloutIds: { has: rollout } }),
        ...(run && { runIds: { has: run } }),
      },
      include: { user: true },
      orderBy: { createdAt: 'desc' },
      take: LISTED,
    });
    return this.#present(caller, rows);
  }

  /** Throws `share_not_found`. */
  async delete(caller: Caller, id: string): Promise<void> {
    if (!isUuid(id)) throw new PalestraError('share_not_found');
    await this.database.prisma.$transaction(async (transaction) => {
      const { count } = await transaction.shareLink.deleteMany({ where: { id, orgId: caller.orgId } });
      if (count === 0) throw new PalestraError('share_not_found');
      await this.audit.record(caller, { action: 'share.delete', targetId: id }, transaction);
    });
  }

  async #scopeOf(caller: Caller, body: CreateShare): Promise<Scope> {
    const { rollout, rollouts, run, runs, q, with_rollouts: withRollouts, message: messageIndex } = body;
    if (rollout !== undefined) return { ...NOTHING, kind: 'rollout', rolloutIds: await this.#rolloutIds(caller, [rollout]), messageIndex };
    if (rollouts !== undefined) return { ...NOTHING, kind: 'rollouts', rolloutIds: await this.#rolloutIds(caller, rollouts) };
    if (runs !== undefined) {
      const runIds = await this.#runIds(caller, runs);
      if (new Set(runIds).size < runIds.length) throw new PalestraError('invalid_request', { detail: 'runs: expected different runs.' });
      return { ...NOTHING, kind: 'runs', runIds };
    }
    const runIds = await this.#runIds(caller, [run!]);
    if (q === undefined) return { ...NOTHING, kind: 'run', runIds, withRollouts };
    if (q.trim() !== '') canonicalQuery(q);
    return { ...NOTHING, kind: 'query', runIds, query: q.trim(), withRollouts };
  }

  async #rolloutIds(caller: Caller, ids: readonly string[]): Promise<string[]> {
    return Promise.all(ids.map(async (id) => (await this.rollouts.find(caller, id)).head.id));
  }

  async #runIds(caller: Caller, runs: readonly string[]): Promise<string[]> {
    return Promise.all(runs.map(async (run) => (await this.runs.get(caller, run)).id));
  }

  /** Without links whose run was deleted: they show nothing. */
  async #present(caller: Caller, rows: readonly (ShareLinkModel & { user: { name: string } })[]): Promise<Share[]> {
    const names = await selectRunNames(this.database.pool, caller.orgId, [...new Set(rows.flatMap(({ runIds }) => runIds))]);
    return rows.flatMap((row) => {
      const scope = presentScope(row, caller.orgName, names);
      return scope === null ? [] : [{ id: row.id, ...scope, author: row.user.name, created_at: row.createdAt.toISOString() }];
    });
  }
}
