import type { IncomingHttpHeaders } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@palestra/session';
import { Authenticator, type AuthRequest } from '../../accounts/authenticator.ts';
import { keyOf } from '../../platform/http/credentials.ts';
import { UnauthenticatedRateLimit } from '../../platform/http/unauthenticated-rate-limit.ts';

/** Returns the caller of a request, or null without a key. Throws `unauthorized` or `key_revoked` for a wrong key, `scope_missing` for a narrow one. */
export type Authenticate = (request: AuthRequest) => Promise<Caller | null>;

/** Authenticates requests of sessions that no Nest guard sees. */
@Injectable()
export class SessionAuthenticator {
  constructor(
    @Inject(Authenticator) private readonly authenticator: Authenticator,
    @Inject(UnauthenticatedRateLimit) private readonly rates: UnauthenticatedRateLimit,
  ) {}

  async authenticate(request: AuthRequest): Promise<Caller | null> {
    // A link or a frame of another site must not act with the cookie of the person whose browser follows it.
    const isForeign = isNavigation(request.headers) && keyOf(request.headers) === null;
    const caller = isForeign ? null : await this.authenticator.authenticate(request);
    if (caller === null && request.raw !== undefined) await this.rates.countUnauthenticated(request.raw);
    if (caller !== null) this.authenticator.requireScope(caller, 'sessions');
    return caller;
  }
}

/** Whether a browser loads the URL as a document, frame or image, not by a script of a page (Fetch Metadata, `Sec-Fetch-Dest`). */
const isNavigation = ({ 'sec-fetch-dest': destination }: IncomingHttpHeaders) =>
  destination !== undefined && destination !== 'empty' && destination !== 'websocket';
