import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import { Authenticator } from './authenticator.ts';
import { REQUIRED_SCOPE, type Scope, SHAREABLE_ROUTE } from './caller.decorator.ts';
import { PUBLIC_ROUTE } from '../platform/http/public.decorator.ts';
import { ShareAccess } from './share-access.ts';
import { StrangerRates } from '../platform/http/stranger-rates.ts';
import { keyOf } from '../platform/http/credentials.ts';

/** Guards every Nest route: sets `request.caller`, refuses what has no caller unless the route is `@Public()`. */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly reflector: Reflector,
    private readonly shares: ShareAccess,
    private readonly rates: StrangerRates,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const targets = [context.getHandler(), context.getClass()];
    // The link of a rollout shows it also to whoever is signed in elsewhere.
    const shareable = this.reflector.getAllAndOverride<boolean>(SHAREABLE_ROUTE, targets);
    const guest = shareable && keyOf(request.headers) === null ? await this.shares.callerFor(request) : null;
    const caller = guest ?? (await this.authenticator.authenticate(request));
    if (caller === null) {
      const openTo = this.reflector.getAllAndOverride<'open' | 'signed' | undefined>(PUBLIC_ROUTE, targets);
      if (openTo !== 'signed') await this.rates.unauthenticated(request.raw);
      if (openTo !== undefined) return true;
      throw new PalestraError('unauthorized');
    }
    request.caller = caller;
    const scope = this.reflector.getAllAndOverride<Scope | undefined>(REQUIRED_SCOPE, targets);
    if (scope) this.authenticator.requireScope(caller, scope);
    return true;
  }
}
