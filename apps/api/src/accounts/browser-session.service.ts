import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { AuditLog } from './audit/audit-log.service.ts';
import { Authenticator } from './authenticator.ts';
import { CredentialMonitor } from './credential-monitor.ts';
import { isOwner } from './owner.ts';

/** Signed-in browsers of an organisation. An owner manages those of all members, other members their own. */
@Injectable()
export class BrowserSessionService {
  constructor(
    private readonly database: Database,
    private readonly authenticator: Authenticator,
    private readonly credentials: CredentialMonitor,
    private readonly audit: AuditLog,
  ) {}

  async list(caller: Caller) {
    const where = { ...(await this.#manageable(caller)), expiresAt: { gt: new Date() } };
    const rows = await this.database.prisma.browserSession.findMany({ where, include: { key: true }, orderBy: { createdAt: 'desc' } });
    const users = await this.database.prisma.user.findMany({ where: { id: { in: rows.map(({ userId }) => userId) } } });
    const nameOf = new Map(users.map(({ id, name }) => [id, name]));
    return rows.map((row) => ({
      id: row.id,
      user: nameOf.get(row.userId) ?? '',
      user_agent: row.userAgent,
      scopes: row.scopes,
      key: row.key && { id: row.key.id, name: row.key.name },
      created_at: row.createdAt.toISOString(),
      expires_at: row.expiresAt.toISOString(),
    }));
  }

  /** Throws `browser_session_not_found`, also for a session that the caller may not manage. */
  async end(caller: Caller, id: string): Promise<void> {
    const where = isUuid(id) ? { id, ...(await this.#manageable(caller)) } : null;
    const ended = where && (await this.#end(caller, where));
    if (!ended) throw new PalestraError('browser_session_not_found');
    this.authenticator.forget();
    await this.credentials.check();
  }

  /** Whether the session existed. */
  #end(caller: Caller, where: { id: string; orgId: string; userId?: string }): Promise<boolean> {
    return this.database.prisma.$transaction(async (transaction) => {
      const row = await transaction.browserSession.findFirst({ where });
      const { count } = await transaction.browserSession.deleteMany({ where });
      if (row === null || count === 0) return false;
      const user = await transaction.user.findUnique({ where: { id: row.userId } });
      const entry = { action: 'browser_session.end', targetId: row.id, target: user?.name ?? null } as const;
      await this.audit.record(caller, { ...entry, details: { user_agent: row.userAgent } }, transaction);
      return true;
    });
  }

  async #manageable(caller: Caller): Promise<{ orgId: string; userId?: string }> {
    const { orgId, userId } = caller;
    return (await isOwner(this.database, caller)) ? { orgId } : { orgId, userId };
  }
}
