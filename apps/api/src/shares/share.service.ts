import { Inject, Injectable } from '@nestjs/common';
import { type Clock, isUuid } from '@palestra/kit';
import { type CreateShare, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { AuditLog } from '../accounts/audit/audit-log.service.ts';
import { hashToken, newToken } from '../accounts/secret-token.ts';
import { Database } from '../platform/database/database.ts';
import type { ShareLinkModel } from '../platform/generated/prisma/models.ts';
import { CLOCK, PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { RolloutService } from '../rollouts/rollout.service.ts';

const DAY_MS = 86_400_000;
const LISTED = 500;

/** Links that show one rollout without an account. */
@Injectable()
export class ShareService {
  constructor(
    private readonly database: Database,
    private readonly rollouts: RolloutService,
    private readonly audit: AuditLog,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  /** Throws `rollout_not_found`. */
  async create(caller: Caller, { rollout, message, expires_in_days }: CreateShare) {
    await this.rollouts.find(caller, rollout);
    const token = newToken();
    const now = this.clock.now();
    await this.database.prisma.shareLink.deleteMany({ where: { orgId: caller.orgId, expiresAt: { lt: new Date(now) } } });
    const data = {
      orgId: caller.orgId,
      userId: caller.userId,
      hash: hashToken(token),
      rolloutId: rollout,
      messageIndex: message,
      expiresAt: new Date(now + expires_in_days * DAY_MS),
    };
    const row = await this.database.prisma.$transaction(async (transaction) => {
      const created = await transaction.shareLink.create({ data, include: { user: true } });
      const details = { rollout, expires_at: data.expiresAt.toISOString() };
      await this.audit.record(caller, { action: 'share.create', targetId: created.id, details }, transaction);
      return created;
    });
    return { ...present(row), url: `${this.origin.url}/share/${token}` };
  }

  async list(caller: Caller, rollout: string | undefined) {
    const rows = await this.database.prisma.shareLink.findMany({
      where: { orgId: caller.orgId, expiresAt: { gt: new Date(this.clock.now()) }, ...(rollout && { rolloutId: rollout }) },
      include: { user: true },
      orderBy: { createdAt: 'desc' },
      take: LISTED,
    });
    return rows.map(present);
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
}

function present(row: ShareLinkModel & { user: { name: string } }) {
  return {
    id: row.id,
    rollout: row.rolloutId,
    message: row.messageIndex,
    author: row.user.name,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt.toISOString(),
  };
}
