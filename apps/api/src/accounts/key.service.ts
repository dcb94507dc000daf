import { Inject, Injectable } from '@nestjs/common';
import { type Clock, isUuid } from '@palestra/kit';
import { type ApiKeyView, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import type { ApiKeyModel } from '../platform/generated/prisma/models.ts';
import { type Config, CONFIG } from '../platform/config.ts';
import { CLOCK } from '../platform/tokens.ts';
import { assertRoomForKey, type Transaction } from './account-limits.ts';
import { Authenticator } from './authenticator.ts';
import type { CreateKeyBody } from './key.schema.ts';
import { CredentialWatch } from './credential-watch.ts';
import { isOwner } from './owner.ts';
import { hashToken, newApiKey } from './secret-token.ts';

const PREFIX_LENGTH = 9;
const WITH_USER = { user: { select: { name: true } } } as const;
type KeyRow = ApiKeyModel & { user: { name: string } };

/** API keys of an organisation: created once, shown once, revoked for good. */
@Injectable()
export class KeyService {
  constructor(
    private readonly database: Database,
    private readonly authenticator: Authenticator,
    private readonly watch: CredentialWatch,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** An owner sees the keys of all members, anybody else their own. */
  async list(caller: Caller): Promise<ApiKeyView[]> {
    const rows = await this.database.prisma.apiKey.findMany({
      where: await this.#manageable(caller),
      include: WITH_USER,
      orderBy: { createdAt: 'desc' },
    });
    return rows.map(presentKey);
  }

  /** A key can do no more than the credential that creates it: in scopes, in sessions and in time. Throws `scope_missing`, `forbidden`, `limit_reached`. */
  async create(caller: Caller, body: CreateKeyBody): Promise<ApiKeyView & { key: string }> {
    for (const scope of body.scopes) this.authenticator.requireScope(caller, scope);
    const creator = caller.keyId === null ? null : await this.database.prisma.apiKey.findUnique({ where: { id: caller.keyId } });
    const maxSessions = body.max_sessions ?? creator?.maxSessions ?? null;
    const expiresAt = body.expires_at === null ? (creator?.expiresAt ?? null) : new Date(body.expires_at);
    if (creator?.maxSessions != null && maxSessions! > creator.maxSessions)
      throw new PalestraError('forbidden', {
        detail: `Your key may open ${creator.maxSessions} sessions; a key that it creates may not open more.`,
      });
    if (creator?.expiresAt != null && expiresAt! > creator.expiresAt)
      throw new PalestraError('forbidden', {
        detail: `Your key expires at ${creator.expiresAt.toISOString()}; a key that it creates may not outlive it.`,
      });
    const { limits } = this.config;
    if (body.max_sessions !== null && body.max_sessions > limits.sessions.key)
      throw new PalestraError('forbidden', {
        detail: `max_sessions: a key of this server may open ${limits.sessions.key} sessions at most.`,
      });
    const key = newApiKey();
    const owner = { orgId: caller.orgId, userId: caller.userId };
    const row = await this.database.prisma.$transaction(async (transaction) => {
      await assertRoomForKey(transaction, limits, caller.orgId, this.clock.now());
      return this.store({ ...owner, name: body.name, scopes: body.scopes, maxSessions, expiresAt }, key, transaction);
    });
    return { ...presentKey(row), key };
  }

  /** Idempotent. Throws `key_not_found`, also for a key that the caller may not manage. */
  async revoke(caller: Caller, id: string): Promise<ApiKeyView> {
    const row = isUuid(id)
      ? await this.database.prisma.apiKey.findFirst({ where: { id, ...(await this.#manageable(caller)) }, include: WITH_USER })
      : null;
    if (!row) throw new PalestraError('key_not_found');
    const revoked = row.revokedAt
      ? row
      : await this.database.prisma.apiKey.update({ where: { id }, data: { revokedAt: new Date() }, include: WITH_USER });
    this.authenticator.forget();
    await this.watch.check();
    return presentKey(revoked);
  }

  async #manageable(caller: Caller): Promise<{ orgId: string; userId?: string }> {
    const { orgId, userId } = caller;
    return (await isOwner(this.database, caller)) ? { orgId } : { orgId, userId };
  }

  /** Stores a given key, also one that is known already (then only its owner is checked). */
  async store(
    owner: { orgId: string; userId: string; name: string; scopes: string[]; maxSessions?: number | null; expiresAt?: Date | null },
    key: string,
    client: Pick<Transaction, 'apiKey'> = this.database.prisma,
  ): Promise<KeyRow> {
    return client.apiKey.upsert({
      where: { hash: hashToken(key) },
      create: { ...owner, prefix: key.slice(0, PREFIX_LENGTH), hash: hashToken(key) },
      update: {},
      include: WITH_USER,
    });
  }
}

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
