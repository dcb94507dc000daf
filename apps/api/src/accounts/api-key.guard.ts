import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { type KeyScope, PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { Authenticator } from './authenticator.ts';
import { REQUIRED_SCOPE } from './caller.decorator.ts';
import { PUBLIC_ROUTE } from '../platform/http/public.decorator.ts';
import { type SharedRead, ShareAccess } from './share-access.ts';
import { SHAREABLE_ROUTE } from './shareable.decorator.ts';
import { UnauthenticatedRateLimit } from '../platform/http/unauthenticated-rate-limit.ts';
import { keyOf } from '../platform/http/credentials.ts';
import { sourceOf } from './audit/request-source.ts';

/** Guards every Nest route: sets `request.caller`, and refuses requests without a caller unless the route is `@Public()`. */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly reflector: Reflector,
    private readonly shares: ShareAccess,
    private readonly rates: UnauthenticatedRateLimit,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const targets = [context.getHandler(), context.getClass()];
    const read = this.reflector.getAllAndOverride<SharedRead | undefined>(SHAREABLE_ROUTE, targets);
    const guest = read !== undefined && keyOf(request.headers) === null ? await this.#guest(request, read) : null;
    const caller = guest ?? (await this.authenticator.authenticate(request));
    if (caller === null) {
      const openTo = this.reflector.getAllAndOverride<'open' | 'signed' | undefined>(PUBLIC_ROUTE, targets);
      if (openTo !== 'signed') await this.rates.countUnauthenticated(request.raw);
      if (openTo !== undefined) return true;
      throw new PalestraError('unauthorized');
    }
    // A copy, because the authenticator caches the caller for all requests with the credential.
    request.caller = { ...caller, source: sourceOf(request) };
    const scope = this.reflector.getAllAndOverride<KeyScope | undefined>(REQUIRED_SCOPE, targets);
    if (scope) this.authenticator.requireScope(caller, scope);
    return true;
  }

  /**
   * The caller of a share link; null when it does not cover this read, or the reader's own account answers it. A link to a rollout also works
   * for users of another organisation, unless that has a rollout with the same id: clients choose the ids, so a link must not hide a user's
   * own rollout. Everything else goes to their own organisation, unless their page shows the link.
   */
  async #guest(request: FastifyRequest, read: SharedRead): Promise<Caller | null> {
    const share = await this.shares.shareFor(request, read);
    if (share === null) return null;
    const signedIn = this.shares.isGuestPage(request) ? null : await this.authenticator.authenticate(request).catch(() => null);
    if (signedIn !== null) {
      if (read !== 'rollout' || signedIn.orgId === share.orgId || (await this.shares.hasRollout(signedIn.orgId, request))) return null;
    }
    await this.rates.countUnauthenticated(request.raw);
    this.shares.restrict(share, request, read);
    request.share = share;
    return this.shares.callerOf(share);
  }
}
