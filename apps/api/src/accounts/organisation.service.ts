import { Inject, Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import {
  type ChangeMember,
  type ChangeOrganisation,
  type CreateMember,
  type CreateOrganisation,
  PalestraError,
  type ROLES,
} from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { isDuplicate } from '../platform/database/database-errors.ts';
import { PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { assertRoomForMember, assertRoomForOrganisation, type Transaction } from './account-limits.ts';
import { AccountService } from './account.service.ts';
import { AuditLog } from './audit/audit-log.service.ts';
import { Authenticator } from './authenticator.ts';
import { isOwner, type Memberships } from './owner.ts';
import { CredentialMonitor } from './credential-monitor.ts';
import { Namespaces } from './namespaces.ts';

type Role = (typeof ROLES)[number];

/** An organisation, its settings and its members. Methods for owners throw `owner_required` for other members. */
@Injectable()
export class OrganisationService {
  constructor(
    private readonly database: Database,
    private readonly accounts: AccountService,
    private readonly namespaces: Namespaces,
    private readonly authenticator: Authenticator,
    private readonly credentials: CredentialMonitor,
    @Inject(CONFIG) private readonly config: Config,
    private readonly audit: AuditLog,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  async get(caller: Caller) {
    const row = await this.database.prisma.organisation.findUniqueOrThrow({
      where: { id: caller.orgId },
      include: { memberships: { where: { userId: caller.userId } } },
    });
    return {
      id: row.id,
      name: row.name,
      role: (row.memberships[0]?.role ?? 'member') as Role,
      retention_days: row.retentionDays,
      max_sessions: row.maxSessions === null ? null : Math.min(row.maxSessions, this.config.limits.sessions.org),
      created_at: row.createdAt.toISOString(),
    };
  }

  async change(caller: Caller, { retention_days, max_sessions }: ChangeOrganisation) {
    await this.#requireOwner(caller);
    const most = this.config.limits.sessions.org;
    if (max_sessions != null && max_sessions > most)
      throw new PalestraError('forbidden', { detail: `max_sessions: an organisation of this server can open at most ${most} sessions.` });
    const data = {
      ...(retention_days !== undefined && { retentionDays: retention_days }),
      ...(max_sessions !== undefined && { maxSessions: max_sessions }),
    };
    await this.#withOwners(caller, null, async (transaction) => {
      await this.#requireOwner(caller, { prisma: transaction });
      const { id, name } = await transaction.organisation.update({ where: { id: caller.orgId }, data });
      const details = { ...(retention_days !== undefined && { retention_days }), ...(max_sessions !== undefined && { max_sessions }) };
      await this.audit.record(caller, { action: 'organisation.change', targetId: id, target: name, details }, transaction);
    });
    this.authenticator.forget();
    return this.get(caller);
  }

  /**
   * The caller becomes its owner and signs a browser in through the link. Throws `organisation_exists`, `name_reserved`, `limit_reached`.
   */
  async create(caller: Caller, { name }: CreateOrganisation) {
    await this.#requireOwner(caller);
    this.namespaces.assertNotReserved(name);
    const data = { name, parentId: caller.orgId, memberships: { create: { userId: caller.userId, role: 'owner' } } };
    const create = async (transaction: Transaction) => {
      await assertRoomForOrganisation(transaction, this.config.limits, caller.orgId);
      const created = await transaction.organisation.create({ data });
      const entry = { action: 'organisation.create', targetId: created.id, target: name } as const;
      // The logs of both organisations record it: the creating one and the new one.
      for (const orgId of [caller.orgId, created.id]) await this.audit.record({ ...caller, orgId }, entry, transaction);
      return created;
    };
    const row = await this.database.prisma.$transaction(create).catch((error: unknown) => {
      throw isDuplicate(error) ? new PalestraError('organisation_exists') : error;
    });
    const organisation = await this.get({ ...caller, orgId: row.id, orgName: row.name });
    return { organisation, sign_in_url: await this.#link(caller, { orgId: row.id, userId: caller.userId }) };
  }

  async members(caller: Caller) {
    const rows = await this.database.prisma.membership.findMany({
      where: { orgId: caller.orgId },
      include: { user: { include: { apiKeys: { where: { orgId: caller.orgId, revokedAt: null }, select: { id: true } } } } },
      orderBy: [{ createdAt: 'asc' }, { userId: 'asc' }],
    });
    return rows.map(({ user, role, createdAt }) => ({
      id: user.id,
      name: user.name,
      role: role as Role,
      created_at: createdAt.toISOString(),
      keys: user.apiKeys.length,
    }));
  }

  /**
   * Always creates a new user: a link for an existing user would also open that user's other organisations. Throws `user_exists`,
   * `name_reserved`, `limit_reached`.
   */
  async addMember(caller: Caller, { name, role }: CreateMember) {
    await this.#requireOwner(caller);
    this.namespaces.assertNotReserved(name);
    const data = { name, memberships: { create: { orgId: caller.orgId, role } } };
    const create = async (transaction: Transaction) => {
      await assertRoomForMember(transaction, this.config.limits, caller.orgId);
      await this.#requireOwner(caller, { prisma: transaction });
      const created = await transaction.user.create({ data, include: { memberships: true } });
      await this.audit.record(caller, { action: 'member.add', targetId: created.id, target: name, details: { role } }, transaction);
      return created;
    };
    const user = await this.database.prisma.$transaction(create).catch((error: unknown) => {
      throw isDuplicate(error) ? new PalestraError('user_exists') : error;
    });
    const created_at = user.memberships[0]!.createdAt.toISOString();
    return {
      id: user.id,
      name: user.name,
      role,
      created_at,
      keys: 0,
      sign_in_url: await this.#link(caller, { orgId: caller.orgId, userId: user.id }),
    };
  }

  /** Throws `member_not_found`, `last_owner`. */
  async changeMember(caller: Caller, id: string, { role }: ChangeMember) {
    await this.#requireOwner(caller);
    await this.#member(caller, id);
    const where = { orgId_userId: { orgId: caller.orgId, userId: id } };
    await this.#withOwners(caller, role === 'owner' ? null : id, async (transaction) => {
      await this.#requireOwner(caller, { prisma: transaction });
      const before = await this.#member(caller, id, { prisma: transaction });
      const { user } = await transaction.membership.update({ where, data: { role }, include: { user: true } });
      const details = { role, before: before.role };
      await this.audit.record(caller, { action: 'member.change', targetId: id, target: user.name, details }, transaction);
    });
    return (await this.members(caller)).find((member) => member.id === id)!;
  }

  /** Revokes the member's keys of this organisation and ends the member's browser sessions. Throws `member_not_found`, `last_owner`. */
  async removeMember(caller: Caller, id: string): Promise<void> {
    if (id !== caller.userId) await this.#requireOwner(caller);
    await this.#member(caller, id);
    const membershipKey = { orgId: caller.orgId, userId: id };
    await this.#withOwners(caller, id, async (transaction) => {
      if (id !== caller.userId) await this.#requireOwner(caller, { prisma: transaction });
      await this.#member(caller, id, { prisma: transaction });
      const keys = await transaction.apiKey.updateMany({ where: { ...membershipKey, revokedAt: null }, data: { revokedAt: new Date() } });
      // Before the browsers: a link that is being used has its browser then.
      await transaction.signInToken.deleteMany({ where: membershipKey });
      const browsers = await transaction.browserSession.deleteMany({ where: membershipKey });
      const { user } = await transaction.membership.delete({ where: { orgId_userId: membershipKey }, include: { user: true } });
      const details = { revoked_keys: keys.count, ended_browser_sessions: browsers.count };
      await this.audit.record(caller, { action: 'member.remove', targetId: id, target: user.name, details }, transaction);
    });
    this.authenticator.forget();
    await this.credentials.check();
  }

  /** Creates another sign-in link for a member, for a new browser. Throws `member_not_found`. */
  async linkOf(caller: Caller, id: string) {
    if (id !== caller.userId) await this.#requireOwner(caller);
    await this.#member(caller, id);
    return { sign_in_url: await this.#link(caller, { orgId: caller.orgId, userId: id }) };
  }

  /** The link grants no scope that the caller lacks. A link for the caller's own user ends with the caller's key. */
  async #link(caller: Caller, { orgId, userId }: { orgId: string; userId: string }): Promise<string> {
    const keyId = userId === caller.userId ? caller.keyId : null;
    return `${this.origin.url}/login?token=${await this.accounts.createSignInToken({ orgId, userId, keyId, scopes: caller.scopes }, caller)}`;
  }

  /** `memberships`: of a transaction that holds the lock of the organisation, before which the caller may have been removed. */
  async #requireOwner(caller: Caller, memberships: Memberships = this.database): Promise<void> {
    if (!(await isOwner(memberships, caller))) throw new PalestraError('owner_required');
  }

  async #member({ orgId }: Caller, userId: string, { prisma }: Memberships = this.database) {
    const membership = isUuid(userId) ? await prisma.membership.findUnique({ where: { orgId_userId: { orgId, userId } } }) : null;
    if (!membership) throw new PalestraError('member_not_found');
    return membership;
  }

  /** Changes members of an organisation one after another, so that two owners cannot remove each other at the same time. */
  async #withOwners({ orgId }: Caller, leaving: string | null, change: (transaction: Transaction) => Promise<unknown>): Promise<void> {
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM organisations WHERE id = ${orgId}::uuid FOR UPDATE`;
      if (leaving !== null) {
        const others = await transaction.membership.count({ where: { orgId, role: 'owner', NOT: { userId: leaving } } });
        if (others === 0) throw new PalestraError('last_owner');
      }
      await change(transaction);
    });
  }
}
