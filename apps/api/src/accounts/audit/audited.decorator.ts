import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  SetMetadata,
  UseInterceptors,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { AuditAction } from '@palestra/protocol';
import type { FastifyRequest } from 'fastify';
import { from, map, mergeMap, type Observable } from 'rxjs';
import type { AuditEntry } from './audit-entry.ts';
import { AuditLog } from './audit-log.service.ts';

const AUDITED = 'palestra:audited';

/** Request and answer of a route, as its description for the log reads them. */
export interface Audible<Body = unknown, Result = unknown> {
  params: Record<string, string>;
  /** As it came: checked, but without defaults. */
  body: Body;
  result: Result;
}
type Describe<Body, Result> = (audible: Audible<Body, Result>) => Omit<AuditEntry, 'action'>;

/** Writes an event of a route between its success and its answer. */
@Injectable()
export class AuditInterceptor implements NestInterceptor {
  constructor(
    private readonly log: AuditLog,
    private readonly reflector: Reflector,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { action, describe } = this.reflector.get<{ action: AuditAction; describe: Describe<unknown, unknown> }>(
      AUDITED,
      context.getHandler(),
    );
    const { caller, params, body } = context.switchToHttp().getRequest<FastifyRequest>();
    return next.handle().pipe(
      mergeMap((result: unknown) => {
        const entry = { action, ...describe({ params: params as Record<string, string>, body, result }) };
        return from(this.log.record(caller!, entry)).pipe(map(() => result));
      }),
    );
  }
}

/** Records successful requests to the route. `describe` chooses what the log says of them; it must pick out nothing that can hold a secret. */
export const Audited = <Body = unknown, Result = unknown>(
  action: AuditAction,
  describe: Describe<Body, Result> = ({ params }) => ({ targetId: params['id'] ?? null }),
): MethodDecorator => applyDecorators(SetMetadata(AUDITED, { action, describe }), UseInterceptors(AuditInterceptor));
