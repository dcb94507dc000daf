import { Injectable } from '@nestjs/common';
import { isUuid } from '@palestra/kit';
import { type ApiKeyView, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import type { ApiKeyModel } from '../platform/generated/prisma/models.ts';
import { Authenticator } from './authenticator.ts';
import type { CreateKeyBody } from './key.schema.ts';
import { SocketWatch } from './socket-watch.ts';
import { hashToken, newApiKey } from './secret-token.ts';

const PREFIX_LENGTH = 9;

/** API keys of an organisation: created once, shown once, revoked for good. */
@Injectable()
export class KeyService {
  constructor(
    private readonly database: Database,
    private readonly authenticator: Authenticator,
    private readonly watch: SocketWatch,
  ) {}

  async list(caller: Caller): Promise<ApiKeyView[]> {
    const rows = await this.database.prisma.apiKey.findMany({ where: { orgId: caller.orgId }, orderBy: { createdAt: 'desc' } });
    return rows.map(presentKey);
  }

  async create(caller: Caller, body: CreateKeyBody): Promise<ApiKeyView & { key: string }> {
    for (const scope of body.scopes) this.authenticator.requireScope(caller, scope);
    const key = newApiKey();
    const { max_sessions: maxSessions, ...named } = body;
    const row = await this.store({ ...named, maxSessions, orgId: caller.orgId, userId: caller.userId }, key);
    return { ...presentKey(row), key };
  }

  /** Idempotent. Throws `key_not_found` for another organisation's key too. */
  async revoke(caller: Caller, id: string): Promise<ApiKeyView> {
    const row = isUuid(id) ? await this.database.prisma.apiKey.findFirst({ where: { id, orgId: caller.orgId } }) : null;
    if (!row) throw new PalestraError('key_not_found');
    const revoked = row.revokedAt ? row : await this.database.prisma.apiKey.update({ where: { id }, data: { revokedAt: new Date() } });
    this.authenticator.forget();
    await this.watch.look();
    return presentKey(revoked);
  }

  /** Stores a given key, also one that is known already (then only its owner is checked). */
  async store(
    owner: { orgId: string; userId: string; name: string; scopes: string[]; maxSessions?: number | null },
    key: string,
  ): Promise<ApiKeyModel> {
    return this.database.prisma.apiKey.upsert({
      where: { hash: hashToken(key) },
      create: { ...owner, prefix: key.slice(0, PREFIX_LENGTH), hash: hashToken(key) },
      update: {},
    });
  }
}

function presentKey(row: ApiKeyModel): ApiKeyView {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: row.scopes,
    max_sessions: row.maxSessions,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
  };
}
