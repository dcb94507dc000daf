import { Injectable } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import { Database } from '../../platform/database/database.ts';
import type { AuditEntry, RequestSource } from './audit-entry.ts';
import { type Actor, auditValues, INSERT_AUDIT } from './audit.sql.ts';

/** Prisma's client or one of its transactions. */
type Executor = Pick<Database['prisma'], '$executeRawUnsafe'>;

/**
 * Records changes and their actors. Pass the transaction of the change, so that both are stored or none; otherwise await it before the
 * response.
 */
@Injectable()
export class AuditLog {
  constructor(private readonly database: Database) {}

  async record(caller: Caller, entry: AuditEntry, executor: Executor = this.database.prisma): Promise<void> {
    // An anonymous caller is not a user.
    const userId = caller.anonymous ? null : caller.userId;
    await this.recordFor({ orgId: caller.orgId, userId, keyId: caller.keyId }, entry, caller.source ?? null, executor);
  }

  /** For events without a caller: sign-ins, and changes by the service itself (`source` null). */
  async recordFor(
    actor: Actor,
    entry: AuditEntry & { refused?: boolean },
    source: RequestSource | null,
    executor: Executor = this.database.prisma,
  ): Promise<void> {
    await executor.$executeRawUnsafe(INSERT_AUDIT, ...auditValues(actor, entry, source));
  }
}
