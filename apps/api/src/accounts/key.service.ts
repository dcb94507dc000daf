import { Inject, Injectable } from '@nestjs/common';
import { type Clock, isUuid } from '@palestra/kit';
import { type ApiKeyView, type CreateKeyBody, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import type { ApiKeyModel } from '../platform/generated/prisma/models.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { CLOCK } from '../platform/tokens.ts';
import { assertRoomForKey, type Transaction } from './account-limits.ts';
import { AuditLog } from './audit/audit-log.service.ts';
import { Authenticator } from './authenticator.ts';
import { CredentialMonitor } from './credential-monitor.ts';
import { isOwner } from './owner.ts';
import { hashToken, newApiKey } from './secret-token.ts';

const PREFIX_LENGTH = 9;
const WITH_USER = { user: { select: { name: true } } } as const;
type KeyRow = ApiKeyModel & { user: { name: string } };

/** API keys of an organisation: shown once, revoked for good. */
@Injectable()
export class KeyService {
  constructor(
    private readonly database: Database,
    private readonly authenticator: Authenticator,
    private readonly credentials: CredentialMonitor,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly audit: AuditLog,
  ) {}

  /** An owner sees the keys of all members, other members their own. */
  async list(caller: Caller): Promise<ApiKeyView[]> {
    const rows = await this.database.prisma.apiKey.findMany({
      where: await this.#manageable(caller),
      include: WITH_USER,
      orderBy: { createdAt: 'desc' },
    });
    return rows.map(presentKey);
  }

  /**
   * A key cannot exceed the credential that creates it, in scopes, sessions and lifetime. Throws `scope_missing`, `forbidden`,
   * `limit_reached`.
   */
  async create(caller: Caller, body: CreateKeyBody): Promise<ApiKeyView & { key: string }> {
    for (const scope of body.scopes) this.authenticator.requireScope(caller, scope);
    const creator = caller.keyId === null ? null : await this.database.prisma.apiKey.findUnique({ where: { id: caller.keyId } });
    const maxSessions = body.max_sessions ?? creator?.maxSessions ?? null;
    const expiresAt = body.expires_at === null ? (creator?.expiresAt ?? null) : new Date(body.expires_at);
    if (creator?.maxSessions != null && maxSessions! > creator.maxSessions)
      throw new PalestraError('forbidden', {
        detail: `Your key can open ${creator.maxSessions} sessions, so a key that it creates cannot open more.`,
      });
    if (creator?.expiresAt != null && expiresAt! > creator.expiresAt)
      throw new PalestraError('forbidden', {
        detail: `Your key expires at ${creator.expiresAt.toISOString()}, so a key that it creates cannot expire later.`,
      });
    const { limits } = this.config;
    if (body.max_sessions !== null && body.max_sessions > limits.sessions.key)
      throw new PalestraError('forbidden', {
        detail: `max_sessions: a key of this server can open at most ${limits.sessions.key} sessions.`,
      });
    const key = newApiKey();
    const { orgId, userId } = caller;
    const data = { orgId, userId, name: body.name, scopes: body.scopes, maxSessions, expiresAt, ...columnsOf(key) };
    const row = await this.database.prisma.$transaction(async (transaction) => {
      await assertRoomForKey(transaction, limits, orgId, this.clock.now());
      await assertNotRemoved(transaction, caller);
      const created = await transaction.apiKey.create({ data, include: WITH_USER });
      await this.audit.record(caller, { action: 'key.create', ...auditedKey(created) }, transaction);
      return created;
    });
    return { ...presentKey(row), key };
  }

  /** Idempotent. Throws `key_not_found`, also for a key that the caller may not manage. */
  async revoke(caller: Caller, id: string): Promise<ApiKeyView> {
    const row = isUuid(id)
      ? await this.database.prisma.apiKey.findFirst({ where: { id, ...(await this.#manageable(caller)) }, include: WITH_USER })
      : null;
    if (!row) throw new PalestraError('key_not_found');
    const revoked = row.revokedAt ? row : await this.#revoke(caller, id);
    this.authenticator.forget();
    await this.credentials.check();
    return presentKey(revoked);
  }

  /** The stored ones among these keys. */
  findByKey(keys: readonly string[]): Promise<ApiKeyModel[]> {
    return this.database.prisma.apiKey.findMany({ where: { hash: { in: keys.map(hashToken) } } });
  }

  /** Revokes a key of the service itself. Idempotent. */
  async retire(hash: ApiKeyModel['hash']): Promise<void> {
    const revoked = await this.database.prisma.apiKey.updateMany({ where: { hash, revokedAt: null }, data: { revokedAt: new Date() } });
    if (revoked.count === 0) return;
    const row = await this.database.prisma.apiKey.findUniqueOrThrow({ where: { hash }, include: WITH_USER });
    await this.audit.recordFor({ orgId: row.orgId, userId: null, keyId: null }, { action: 'key.revoke', ...auditedKey(row) }, null);
    this.authenticator.forget();
    await this.credentials.check();
  }

  #revoke(caller: Caller, id: string): Promise<KeyRow> {
    return this.database.prisma.$transaction(async (transaction) => {
      const revoked = await transaction.apiKey.update({ where: { id }, data: { revokedAt: new Date() }, include: WITH_USER });
      await this.audit.record(caller, { action: 'key.revoke', ...auditedKey(revoked) }, transaction);
      return revoked;
    });
  }

  async #manageable(caller: Caller): Promise<{ orgId: string; userId?: string }> {
    const { orgId, userId } = caller;
    return (await isOwner(this.database, caller)) ? { orgId } : { orgId, userId };
  }

  /** Stores a key that the service or its operator chose. Does not change an existing one. */
  async store(owner: { orgId: string; userId: string; name: string; scopes: string[] }, key: string): Promise<KeyRow> {
    const { prisma } = this.database;
    const { hash } = columnsOf(key);
    // Replicas that start together store the same key.
    const { count } = await prisma.apiKey.createMany({ data: { ...owner, ...columnsOf(key) }, skipDuplicates: true });
    const row = await prisma.apiKey.findUniqueOrThrow({ where: { hash }, include: WITH_USER });
    const service = { orgId: row.orgId, userId: null, keyId: null };
    if (count > 0) await this.audit.recordFor(service, { action: 'key.create', ...auditedKey(row) }, null);
    return row;
  }
}

/**
 * Throws `key_revoked` or `unauthorized` when the caller was removed from the organisation while it waited for its lock: the removal revokes
 * only the keys that exist.
 */
async function assertNotRemoved(transaction: Transaction, { orgId, userId, keyId }: Caller): Promise<void> {
  const key = keyId === null ? null : await transaction.apiKey.findUnique({ where: { id: keyId } });
  if (key?.revokedAt) throw new PalestraError('key_revoked');
  // A browser may be in another organisation than the key that signed it in.
  if (key?.orgId !== orgId && (await transaction.membership.count({ where: { orgId, userId } })) === 0)
    throw new PalestraError('unauthorized');
}

const columnsOf = (key: string) => ({ prefix: key.slice(0, PREFIX_LENGTH), hash: hashToken(key) });

const auditedKey = ({ id, name, user, scopes, expiresAt, maxSessions }: KeyRow) => ({
  targetId: id,
  target: name,
  details: { user: user.name, scopes, expires_at: expiresAt?.toISOString() ?? null, max_sessions: maxSessions },
});

function presentKey(row: KeyRow): ApiKeyView {
  return {
    id: row.id,
    name: row.name,
    user: row.user.name,
    prefix: row.prefix,
    scopes: row.scopes,
    max_sessions: row.maxSessions,
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt?.toISOString() ?? null,
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
  };
}
