import { Inject, Injectable } from '@nestjs/common';
import type { Clock } from '@palestra/kit';
import { KEY_SCOPES, type MeView, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Database } from '../platform/database/database.ts';
import { CLOCK } from '../platform/tokens.ts';
import type { Actor } from './audit/audit.sql.ts';
import type { RequestSource } from './audit/audit-entry.ts';
import type { Transaction } from './account-limits.ts';
import { AuditLog } from './audit/audit-log.service.ts';
import { KeyService } from './key.service.ts';
import { FIRST_ORG } from './owner.ts';
import { hashToken, newToken } from './secret-token.ts';

/** First user of an installation. */
export const FIRST_USER = 'me';
const SIGN_IN_LINK_MS = 24 * 3_600_000;
export const BROWSER_SESSION_MS = 30 * 24 * 3_600_000;

const USER_AGENT_CHARACTERS = 200;
/** Per user and organisation. A further sign-in deletes the oldest, so repeated sign-ins cannot fill the tables. */
const MAX_BROWSERS = 200;
const MAX_LINKS = 200;
const MAX_ORGANISATIONS = 100;
const NO_ACTOR: Actor = { orgId: null, userId: null, keyId: null };

/** Rights of a browser session: never more than those of the credential that opened it. */
export interface BrowserAccess {
  orgId: string;
  userId: string;
  /** The session ends with this key; null for a link that the service printed or that an owner created for another user. */
  keyId: string | null;
  scopes: string[];
  canSwitch?: boolean;
}

/** Organisations, users and browser sessions. */
@Injectable()
export class AccountService {
  constructor(
    private readonly database: Database,
    private readonly keys: KeyService,
    private readonly audit: AuditLog,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  async me(caller: Caller): Promise<MeView> {
    const user = await this.database.prisma.user.findUniqueOrThrow({ where: { id: caller.userId } });
    const org = { id: caller.orgId, name: caller.orgName };
    return { user: { id: user.id, name: user.name }, org, organisations: await this.#organisationsOf(caller, org) };
  }

  /** Those that this browser can switch to, at most 100 by name. */
  async #organisationsOf({ userId, canSwitch = false }: Caller, current: { id: string; name: string }) {
    if (!canSwitch) return [current];
    const rows = await this.database.prisma.membership.findMany({
      where: { userId },
      include: { org: true },
      orderBy: { org: { name: 'asc' } },
      take: MAX_ORGANISATIONS,
    });
    return rows.map(({ org: { id, name } }) => ({ id, name }));
  }

  /** For `orwd whoami`: the namespace of the caller's environments (docs/reference/ors.md#rest-endpoints). */
  async namespace(caller: Caller, type: string | undefined): Promise<{ name: string; id: string; type: string }> {
    if (type === 'org' || type === undefined) return { name: caller.orgName, id: caller.orgId, type: 'org' };
    if (type !== 'user') throw new PalestraError('invalid_request', { detail: 'type must be "user" or "org".' });
    // A caller has one namespace: a user's environments belong to the organisation of the key.
    return { name: caller.orgName, id: caller.orgId, type: 'user' };
  }

  /** Creates an organisation with one owner unless they exist. */
  async ensureOwner(orgName: string, userName: string): Promise<{ orgId: string; userId: string }> {
    const { prisma } = this.database;
    const org = await prisma.organisation.upsert({ where: { name: orgName }, create: { name: orgName }, update: {} });
    const user = await prisma.user.upsert({ where: { name: userName }, create: { name: userName }, update: {} });
    const id = { orgId: org.id, userId: user.id };
    await prisma.membership.upsert({ where: { orgId_userId: id }, create: id, update: {} });
    return id;
  }

  /** Creates the first owner with this key unless they exist. `revoked`: the key was revoked since. */
  async ensureFirstOwner(key: string): Promise<{ owner: { orgId: string; userId: string }; revoked: boolean }> {
    const owner = await this.ensureOwner(FIRST_ORG, FIRST_USER);
    const stored = await this.keys.store({ ...owner, name: 'first key', scopes: [...KEY_SCOPES] }, key);
    return { owner, revoked: stored.revokedAt !== null };
  }

  /**
   * Creates a token for `/login?token=`, valid once within a day. The browser session gets these scopes and ends with the key. `creator`
   * null: the service itself. Only a link of the service, or one that users create for themselves in a browser with that right, lets the
   * browser switch between organisations: an owner can create links for other members, whose other organisations are not theirs.
   */
  async createSignInToken(access: BrowserAccess, creator: Caller | null): Promise<string> {
    const token = newToken();
    const now = this.clock.now();
    const { orgId, userId, keyId, scopes } = access;
    const canSwitch = keyId === null && (creator === null || (creator.userId === userId && creator.canSwitch === true));
    const data = { orgId, userId, keyId, scopes, canSwitch, hash: hashToken(token), expiresAt: new Date(now + SIGN_IN_LINK_MS) };
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.signInToken.deleteMany({ where: { expiresAt: { lt: new Date(now) } } });
      await transaction.signInToken.create({ data });
      const user = await transaction.user.findUnique({ where: { id: userId } });
      const entry = { action: 'sign_in_link.create', targetId: userId, target: user?.name ?? null, details: { scopes } } as const;
      const actor = { orgId, userId: creator?.userId ?? null, keyId: creator?.keyId ?? null };
      await this.audit.recordFor(actor, entry, creator?.source ?? null, transaction);
    });
    await this.database.prisma.$executeRaw`DELETE FROM sign_in_tokens WHERE hash IN (
      SELECT hash FROM sign_in_tokens WHERE org_id = ${orgId}::uuid AND user_id = ${userId}::uuid ORDER BY expires_at DESC OFFSET ${MAX_LINKS})`;
    return token;
  }

  /** Whether a sign-in token is valid now. Does not use it. */
  async isSignInTokenValid(token: string): Promise<boolean> {
    const row = await this.database.prisma.signInToken.findUnique({ where: { hash: hashToken(token) } });
    return row !== null && row.expiresAt.getTime() > this.clock.now();
  }

  /** Uses a sign-in token. Returns the cookie's token, or null when the sign-in token is unknown, used or expired. */
  async redeemSignInToken(token: string, source: RequestSource): Promise<string | null> {
    const hash = hashToken(token);
    const { prisma } = this.database;
    const row = await prisma.signInToken.findUnique({ where: { hash } });
    const cookie =
      row === null || row.expiresAt.getTime() <= this.clock.now()
        ? null
        : await prisma.$transaction(async (transaction) => {
            const { count } = await transaction.signInToken.deleteMany({ where: { hash } });
            return count === 1 ? this.#openBrowserSession(row, 'link', source, transaction) : null;
          });
    if (cookie === null) await this.#recordRefusal(row, { method: 'link', reason: 'unknown, used or expired' }, source);
    else await this.#endOldestBrowsers(row!);
    return cookie;
  }

  /** Opens a browser session for the owner of a key. */
  async openBrowserSession(access: BrowserAccess, source: RequestSource): Promise<string> {
    const cookie = await this.database.prisma.$transaction((transaction) => this.#openBrowserSession(access, 'key', source, transaction));
    await this.#endOldestBrowsers(access);
    return cookie;
  }

  /** Runs after the commit, because concurrent sign-ins do not see each other before. */
  async #endOldestBrowsers({ orgId, userId }: Pick<BrowserAccess, 'orgId' | 'userId'>): Promise<void> {
    await this.database.prisma.$executeRaw`DELETE FROM browser_sessions WHERE hash IN (
      SELECT hash FROM browser_sessions WHERE org_id = ${orgId}::uuid AND user_id = ${userId}::uuid ORDER BY created_at DESC OFFSET ${MAX_BROWSERS})`;
  }

  /** Records a sign-in with an unknown, revoked or expired key. The log has the owner of the key, never the key. */
  async recordRefusedKey(key: string, reason: string, source: RequestSource): Promise<void> {
    const row = await this.database.prisma.apiKey.findUnique({ where: { hash: hashToken(key) } });
    await this.#recordRefusal(row && { ...row, keyId: row.id }, { method: 'key', reason }, source);
  }

  async closeBrowserSession(token: string, source: RequestSource): Promise<void> {
    await this.database.prisma.$transaction(async (transaction) => {
      const row = await transaction.browserSession.findUnique({ where: { hash: hashToken(token) } });
      if (row === null) return;
      await transaction.browserSession.deleteMany({ where: { hash: row.hash } });
      await this.audit.recordFor(row, { action: 'sign_out', targetId: row.id }, source, transaction);
    });
  }

  async #openBrowserSession(access: BrowserAccess, method: 'key' | 'link', source: RequestSource, transaction: Transaction) {
    const { orgId, userId, keyId, scopes } = access;
    const canSwitch = method === 'link' && access.canSwitch === true;
    const token = newToken();
    const expiresAt = new Date(this.clock.now() + BROWSER_SESSION_MS);
    const userAgent = source.userAgent.slice(0, USER_AGENT_CHARACTERS);
    const row = await transaction.browserSession.create({
      data: { hash: hashToken(token), orgId, userId, keyId, scopes, canSwitch, expiresAt, userAgent },
    });
    await this.audit.recordFor(access, { action: 'sign_in', targetId: row.id, details: { method } }, source, transaction);
    return token;
  }

  async #recordRefusal(actor: Actor | null, details: Record<string, string>, source: RequestSource): Promise<void> {
    await this.audit.recordFor(actor ?? NO_ACTOR, { action: 'sign_in', refused: true, details }, source);
  }
}
