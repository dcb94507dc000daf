import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { PUBLIC_ORIGIN, type PublicOrigin } from '../platform/tokens.ts';
import { AccountService, BROWSER_SESSION_MS } from './account.service.ts';
import { sourceOf } from './audit/request-source.ts';
import { Authenticator, isFromOwnPage, sessionCookieName } from './authenticator.ts';
import { cookieOf } from './cookies.ts';
import { CredentialMonitor } from './credential-monitor.ts';
import { nextPath } from './next-path.ts';

/** Signs browsers in and out. Returned cookies are values of `Set-Cookie`. */
@Injectable()
export class SignInService {
  constructor(
    private readonly accounts: AccountService,
    private readonly authenticator: Authenticator,
    private readonly credentials: CredentialMonitor,
    private readonly rates: UnauthenticatedRateLimit,
    @Inject(PUBLIC_ORIGIN) private readonly origin: PublicOrigin,
  ) {}

  /** Whether a sign-in link is valid now. Does not use it. An invalid one counts as a failure of the client's address. */
  async isValidLink(token: string | undefined, request: FastifyRequest): Promise<boolean> {
    if (token === undefined) return false;
    const isValid = await this.accounts.isSignInTokenValid(token);
    if (!isValid) await this.rates.countFailure(request.raw);
    return isValid;
  }

  /** Uses the sign-in link of a posted form. `cookie` is null when the link is unknown, used or expired; `next` is the page to show. */
  async signInByLink(request: FastifyRequest): Promise<{ cookie: string | null; next: string }> {
    assertOwnForm(request);
    const form = new URLSearchParams((request.body as Buffer | undefined)?.toString('utf8'));
    const token = await this.accounts.redeemSignInToken(form.get('token') ?? '', sourceOf(request));
    if (token === null) await this.rates.countFailure(request.raw);
    const cookie = token === null ? null : this.#cookie(token, BROWSER_SESSION_MS / 1000);
    return { cookie, next: nextPath(form.get('next')) };
  }

  /** Returns a cookie. Throws `unauthorized`, `key_revoked` or `key_expired`, and `rate_limited` after too many unknown keys. */
  async signInByKey(key: string, request: FastifyRequest): Promise<string> {
    assertOwnForm(request);
    const caller = await this.authenticator.ofKey(key, request.raw).catch(async (error: unknown) => {
      if (error instanceof PalestraError && error.status === 401) await this.accounts.recordRefusedKey(key, error.code, sourceOf(request));
      throw error;
    });
    return this.#cookie(await this.accounts.openBrowserSession(caller, sourceOf(request)), BROWSER_SESSION_MS / 1000);
  }

  /** Ends the request's browser session. Returns the cookie that deletes the browser's. */
  async signOut(request: FastifyRequest): Promise<string> {
    const token = this.authenticator.sessionToken(request.headers);
    if (token !== null) await this.accounts.closeBrowserSession(token, sourceOf(request));
    this.authenticator.forget();
    await this.credentials.check();
    return this.#cookie('', 0);
  }

  #cookie(value: string, maxAgeSeconds: number): string {
    return cookieOf(sessionCookieName(this.origin.url), value, maxAgeSeconds, this.origin.url);
  }
}

/** A page of another site must not sign its visitor in to another account (login CSRF). Programs send neither of the two headers. */
function assertOwnForm({ headers }: FastifyRequest): void {
  const isBrowser = headers['sec-fetch-site'] !== undefined || headers.origin !== undefined;
  if (isBrowser && !isFromOwnPage(headers)) throw new PalestraError('forbidden', { detail: 'Sign in from a page of Palestra itself.' });
}
