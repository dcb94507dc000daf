import { applyDecorators, type CallHandler, type ExecutionContext, Injectable, mixin, SetMetadata, UseInterceptors } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { defer, finalize, map, type Observable } from 'rxjs';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import type { SharedRead } from './share-access.ts';

/** Route metadata read by ApiKeyGuard: a browser that opened a share link which covers this read needs no key. */
export const SHAREABLE_ROUTE = 'palestra:shareable';

/** Reads by share links in progress, so that a link in a busy chat leaves capacity to members. */
const reads = new TenantConcurrency('reads by share links', { owner: 32, all: 128 });

/** `present`: the answer without what a link does not cover. It is called for guests only. */
export function Shareable<T extends object>(read: SharedRead, present?: (answer: T) => object) {
  @Injectable()
  class GuestAnswer {
    intercept(context: ExecutionContext, next: CallHandler<T | undefined>): Observable<unknown> {
      const { share } = context.switchToHttp().getRequest<FastifyRequest>();
      if (share === undefined) return next.handle();
      return defer(() => {
        const release = reads.acquire(share.orgId);
        return next.handle().pipe(
          map((answer) => (present && answer !== undefined ? present(answer) : answer)),
          finalize(release),
        );
      });
    }
  }
  return applyDecorators(SetMetadata(SHAREABLE_ROUTE, read), UseInterceptors(mixin(GuestAnswer)));
}
