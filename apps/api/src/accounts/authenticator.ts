import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { type Clock, SingleFlight } from '@palestra/kit';
import { type KeyScope, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { type Config, CONFIG } from '../platform/config.ts';
import { Database } from '../platform/database/database.ts';
import type { ApiKeyModel, OrganisationModel } from '../platform/generated/prisma/models.ts';
import { retryDatabase } from '../platform/database/database-retry.ts';
import { markAuthenticated } from '../platform/http/connections.ts';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { atMost } from '../platform/limits.ts';
import { CLOCK, PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { readCookie } from './cookies.ts';
import { keyOf } from '../platform/http/credentials.ts';
import { hashToken } from './secret-token.ts';

const COOKIE_NAME = 'palestra_session';
/** Over https a browser accepts a cookie with this prefix only from this host, with Secure and Path=/ (RFC 6265bis section 4.1.3.2). */
export const sessionCookieName = (origin: string) => (origin.startsWith('https:') ? `__Host-${COOKIE_NAME}` : COOKIE_NAME);

/** A revoked key stops working on every replica within this time. */
const CACHE_MS = 5_000;
const CACHE_ENTRIES = 10_000;
/** `last_used_at` is written at most this often per key. */
const LAST_USED_MS = 60_000;

/** `raw`: the request, for the rate limit of its address; absent when it was counted already. */
export type AuthRequest = Pick<FastifyRequest, 'headers' | 'method'> & { raw?: IncomingMessage };

/**
 * The organisation of a page, by name, among those of the browser's user. Streams, sockets and images cannot send the header: for them the page
 * in front sets the cookie.
 */
const ORGANISATION_HEADER = 'x-palestra-organisation';
const ORGANISATION_COOKIE = 'palestra_organisation';
/** Characters of the longest name, percent-encoded. */
const MAX_NAME = 1_000;

/** `required`: a page of this organisation must not show another one. */
interface Organisation {
  name: string;
  required: boolean;
}

type CredentialCheck = { caller: Caller } | { refused: 'unauthorized' | 'key_revoked' | 'key_expired' | 'organisation_not_found' };

/** Finds the caller of a request by API key or browser cookie. Caches results for a few seconds to avoid a query per request. */
@Injectable()
export class Authenticator {
  readonly #accepted;
  /** A separate cache: many wrong keys do not evict valid ones. */
  readonly #refused;
  readonly #loads = new SingleFlight<CredentialCheck>();
  readonly #lastUsed = new Map<string, number>();
  #anonymous: Caller | null = null;

  constructor(
    private readonly database: Database,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
    private readonly rates: UnauthenticatedRateLimit,
  ) {
    const options = { max: CACHE_ENTRIES, ttl: CACHE_MS, ttlResolution: 0, perf: clock };
    this.#accepted = new LRUCache<string, CredentialCheck>(options);
    this.#refused = new LRUCache<string, CredentialCheck>(options);
  }

  /**
   * The caller, or null without a credential (then only public routes are open). Throws `unauthorized` for an unknown key, `key_revoked` or
   * `key_expired` for one that has ended, `rate_limited` when too many unknown ones came from its address, `forbidden` for a cookie on a
   * changing request from another site, and `organisation_not_found` for a page of an organisation that the browser cannot switch to.
   */
  async authenticate(request: AuthRequest): Promise<Caller | null> {
    const caller = await this.#callerOfRequest(request);
    if (caller !== null && request.raw !== undefined) markAuthenticated(request.raw);
    return caller;
  }

  async #callerOfRequest(request: AuthRequest): Promise<Caller | null> {
    const key = keyOf(request.headers);
    if (key !== null) {
      if (!this.config.anonymous) return this.ofKey(key, request.raw);
      return this.ofKey(key).catch((error: unknown) => (isWrongKey(error) ? this.#anonymousCaller(request) : Promise.reject(error)));
    }
    const cookie = this.sessionToken(request.headers);
    if (cookie !== null) {
      assertSameOrigin(request);
      return this.#callerOf('cookie', cookie, requestedOrganisation(request.headers)).catch((error: unknown) =>
        isWrongKey(error) ? null : Promise.reject(error),
      );
    }
    return this.config.anonymous ? this.#anonymousCaller(request) : null;
  }

  /** The token of the request's browser session; null without one. */
  sessionToken(headers: IncomingHttpHeaders): string | null {
    return readCookie(headers.cookie, sessionCookieName(this.origin.url));
  }

  /**
   * The owner of an API key. Throws `unauthorized`, `key_revoked` or `key_expired`; with the request as `raw`, also `rate_limited` when too
   * many unknown keys came from its address.
   */
  async ofKey(key: string, raw?: IncomingMessage): Promise<Caller> {
    try {
      return await this.#callerOf('key', key);
    } catch (error) {
      if (raw !== undefined && error instanceof PalestraError && error.code === 'unauthorized') await this.rates.countFailure(raw);
      throw error;
    }
  }

  /** Throws `scope_missing` when the caller lacks the scope. */
  requireScope(caller: Caller, scope: KeyScope): void {
    if (!caller.scopes.includes(scope)) {
      throw new PalestraError('scope_missing', {
        detail: `This API key lacks the scope "${scope}" that this route needs. Use a key with this scope.`,
      });
    }
  }

  /** Clears the cache of this replica. */
  forget(): void {
    this.#accepted.clear();
    this.#refused.clear();
  }

  async #callerOf(kind: 'key' | 'cookie', token: string, organisation: Organisation | null = null): Promise<Caller> {
    const cacheKey = JSON.stringify([kind, token, organisation]);
    let check = this.#accepted.get(cacheKey) ?? this.#refused.get(cacheKey);
    if (check === undefined) {
      check = await this.#loads.do(cacheKey, () => (kind === 'key' ? this.#loadKey(token) : this.#loadCookie(token, organisation)));
      const [kept, other] = 'refused' in check ? [this.#refused, this.#accepted] : [this.#accepted, this.#refused];
      kept.set(cacheKey, check);
      other.delete(cacheKey);
    }
    if ('refused' in check) throw new PalestraError(check.refused);
    return check.caller;
  }

  async #loadKey(key: string): Promise<CredentialCheck> {
    const row = await retryDatabase(() =>
      this.database.prisma.apiKey.findUnique({ where: { hash: hashToken(key) }, include: { org: true } }),
    );
    if (!row) return { refused: 'unauthorized' };
    return this.#checkOf(row);
  }

  #checkOf(row: ApiKeyModel & { org: OrganisationModel }): CredentialCheck {
    if (row.revokedAt) return { refused: 'key_revoked' };
    if (row.expiresAt !== null && row.expiresAt.getTime() <= this.clock.now()) return { refused: 'key_expired' };
    this.#recordUse(row.id);
    const { userId, orgId, org, scopes } = row;
    const maxSessions = this.#quota(row, org);
    return { caller: { userId, orgId, orgName: org.name, keyId: row.id, scopes, anonymous: false, maxSessions } };
  }

  /** The limit that owners set, at most the operator's limit. */
  #quota(key: { maxSessions: number | null } | null, org: { maxSessions: number | null }): Caller['maxSessions'] {
    const { sessions } = this.config.limits;
    return { key: atMost(sessions.key, key?.maxSessions ?? null), org: atMost(sessions.org, org.maxSessions) };
  }

  /**
   * A browser session has the rights of the key that opened it, and ends with that key. `organisation`: that of the page; null: the one that
   * the browser was signed in to.
   */
  async #loadCookie(token: string, organisation: Organisation | null): Promise<CredentialCheck> {
    const row = await this.database.prisma.browserSession.findUnique({
      where: { hash: hashToken(token) },
      include: { key: { include: { org: true } } },
    });
    if (!row || row.expiresAt.getTime() <= this.clock.now()) return { refused: 'unauthorized' };
    const { userId, scopes, key, canSwitch } = row;
    const check = key && this.#checkOf(key);
    if (check && 'refused' in check) return check;
    // A sign-in link to a new organisation may come from a key of another one. A link that was stored just after its member was removed opens
    // nothing.
    const where = { orgId_userId: { orgId: row.orgId, userId } };
    const membership = await this.database.prisma.membership.findUnique({ where, include: { org: true } });
    if (membership === null) return { refused: 'unauthorized' };
    const home = membership.org;
    const isHome = organisation === null || organisation.name === home.name;
    const found = isHome ? home : canSwitch ? await this.#memberOf(userId, organisation.name) : null;
    if (found === null && organisation?.required) return { refused: 'organisation_not_found' };
    const org = found ?? home;
    const maxSessions = this.#quota(key, org);
    return { caller: { userId, orgId: org.id, orgName: org.name, keyId: row.keyId, scopes, anonymous: false, canSwitch, maxSessions } };
  }

  /** An organisation of the user, by name. */
  async #memberOf(userId: string, name: string): Promise<OrganisationModel | null> {
    const membership = await this.database.prisma.membership.findFirst({ where: { userId, org: { name } }, include: { org: true } });
    return membership?.org ?? null;
  }

  async #anonymousCaller({ headers }: Pick<FastifyRequest, 'headers'>): Promise<Caller> {
    if (!isFromProgram(headers) && !isFromOwnPage(headers))
      throw new PalestraError('forbidden', { detail: 'A page of another site needs an API key to use this service.' });
    if (!isTrustedHost(headers.host, this.origin.url)) {
      const detail = `The address "${headers.host}" is not an address of this service. Set PALESTRA_PUBLIC_URL to it, or use an API key.`;
      throw new PalestraError('forbidden', { detail });
    }
    if (this.#anonymous) return this.#anonymous;
    const row = await this.database.prisma.membership.findFirstOrThrow({ include: { org: true }, orderBy: { org: { createdAt: 'asc' } } });
    this.#anonymous = {
      userId: row.userId,
      orgId: row.orgId,
      orgName: row.org.name,
      keyId: null,
      scopes: ['sessions', 'environments', 'rollouts'],
      anonymous: true,
      maxSessions: this.#quota(null, row.org),
    };
    return this.#anonymous;
  }

  #recordUse(keyId: string): void {
    const now = this.clock.now();
    if (now - (this.#lastUsed.get(keyId) ?? 0) < LAST_USED_MS) return;
    this.#lastUsed.set(keyId, now);
    // Best effort: a lost time stamp must not fail the request.
    this.database.prisma.apiKey.update({ where: { id: keyId }, data: { lastUsedAt: new Date(now) } }).catch(() => {});
  }
}

function requestedOrganisation(headers: IncomingHttpHeaders): Organisation | null {
  const header = headers[ORGANISATION_HEADER];
  const text = typeof header === 'string' ? header : readCookie(headers.cookie, ORGANISATION_COOKIE);
  if (text === null) return null;
  return { name: decodeName(text.slice(0, MAX_NAME)), required: typeof header === 'string' };
}

/** Headers are ASCII; names are not. */
function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const isWrongKey = (error: unknown): boolean => error instanceof PalestraError && error.status === 401;

/** Browsers send the cookie with any request, so a changing request must come from our own page (browsers send one of these headers). */
function assertSameOrigin(request: Pick<FastifyRequest, 'headers' | 'method'>): void {
  // Any page may open a WebSocket to any host, and its messages change state.
  if ((request.method === 'GET' || request.method === 'HEAD') && request.headers.upgrade === undefined) return;
  if (!isFromOwnPage(request.headers))
    throw new PalestraError('forbidden', { detail: 'A browser session allows changes only from the dashboard. Use an API key.' });
}

/** Whether a browser sent the request from a page of this origin. Browsers send at least one of the two headers with a changing request. */
export function isFromOwnPage({ 'sec-fetch-site': site, origin, host }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site === 'same-origin';
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
}

/** Whether the request comes from a program and not from a page in a browser. */
const isFromProgram = ({ 'sec-fetch-site': site, origin }: IncomingHttpHeaders) =>
  (site === undefined || site === 'none') && origin === undefined;

/** A client that knows only the service's own name asks the other two (docs/operations.md#host-names). */
const namesOf = (host: string): string[] => [host, `api.${host}`, `sessions.${host}`];

/**
 * Whether a foreign page cannot have this host as its own. DNS rebinding needs a registered name, unlike loopback names, IP addresses and
 * names without a dot, as in a container network.
 */
function isTrustedHost(host: string | undefined, publicUrl: string): boolean {
  if (host === undefined || !URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  if (URL.canParse(publicUrl) && namesOf(new URL(publicUrl).hostname).includes(hostname)) return true;
  return isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || !hostname.includes('.') || hostname.endsWith('.localhost');
}
