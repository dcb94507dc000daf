import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '@palestra/session';
import type { KeyScope } from '@palestra/protocol';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by ApiKeyGuard; absent on `@Public()` routes when the request has no valid key. */
    caller?: Caller;
  }
}

/** The authenticated caller; `undefined` only on `@Public()` routes without a key. */
export const CurrentCaller = createParamDecorator((_data: unknown, context: ExecutionContext): Caller | undefined => {
  return context.switchToHttp().getRequest<FastifyRequest>().caller;
});

/** Route metadata read by ApiKeyGuard: the key needs this scope. */
export const REQUIRED_SCOPE = 'palestra:scope';
export const RequireScope = (scope: KeyScope) => SetMetadata(REQUIRED_SCOPE, scope);
