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

/** Request and result of a route, for the description of its event. */
export interface AuditedRequest<Body = unknown, Result = unknown> {
  params: Record<string, string>;
  /** Validated, but without defaults. */
  body: Body;
  result: Result;
}
type Describe<Body, Result> = (request: AuditedRequest<Body, Result>) => Omit<AuditEntry, 'action'>;

/** Writes the event of a route after its success and before its response. */
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

/** Records successful requests to the route. `describe` selects the fields of the event; it must select nothing that can have a secret. */
export const Audited = <Body = unknown, Result = unknown>(
  action: AuditAction,
  describe: Describe<Body, Result> = ({ params }) => ({ targetId: params['id'] ?? null }),
): MethodDecorator => applyDecorators(SetMetadata(AUDITED, { action, describe }), UseInterceptors(AuditInterceptor));
