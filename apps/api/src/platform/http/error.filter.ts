import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject, Optional } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { BatchQueueFullError, newUuid } from '@palestra/kit';
import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import type { Logger } from 'pino';
import { isDatabaseUnavailable, isDiskFull as isFullDisk, isRolledBack, isUnstorableText } from '../database/database-errors.ts';
import { databaseDiskFull, Readiness } from '../database/readiness.ts';
import { LOGGER } from '../tokens.ts';
import { RouteTable } from './route-table.ts';

/** Renders the errors of all routes: the only place where an error becomes a status, headers and a body. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly routes: RouteTable,
    @Optional() @Inject(Readiness) private readonly readiness: Pick<Readiness, 'isDiskFull'> = { isDiskFull: false },
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.send(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  send(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    if (reply.sent || reply.raw.headersSent) {
      // The response has begun as a stream and can only be cut.
      reply.raw.destroy();
      return;
    }
    const known = explainFullDisk(toPalestraError(error, request, this.routes), this.readiness.isDiskFull);
    const body: Record<string, unknown> = known.toBody();
    if (known.code === 'internal_error') {
      body.id = newUuid();
      // The query may have sign-in tokens and signatures.
      const [path] = request.url.split('?', 1);
      this.logger.error({ err: error, id: body.id, method: request.method, path }, 'request failed');
    }
    void reply.status(known.status).headers(errorHeaders(known)).type('application/json; charset=utf-8').send(JSON.stringify(body));
  }
}

/** `Retry-After` and `X-Backend-State` (docs/reference/ors.md#headers). */
export function errorHeaders(error: PalestraError): Record<string, string> {
  return {
    ...(error.retryAfterSeconds === undefined ? {} : { 'retry-after': String(error.retryAfterSeconds) }),
    ...(error.backendStarting ? { 'x-backend-state': 'starting' } : {}),
  };
}

/** PostgreSQL does not start on a full disk: then `database_unavailable` does not name the cause. */
function explainFullDisk(error: PalestraError, isDiskFull: boolean): PalestraError {
  return error.code === 'database_unavailable' && (isDiskFull || isFullDisk(error.cause)) ? databaseDiskFull(error.cause) : error;
}

export function toPalestraError(error: unknown, request: Pick<FastifyRequest, 'method' | 'url'>, routes: RouteTable): PalestraError {
  if (error instanceof PalestraError) return error;
  if (error instanceof BatchQueueFullError) return new PalestraError('ingest_overloaded', { retryAfterSeconds: 1, cause: error });
  // The only deadlines that reach this line are those of requests to an environment's server (AbortSignal.timeout).
  if (error instanceof DOMException && error.name === 'TimeoutError') return new PalestraError('backend_timeout', { cause: error });
  if (error instanceof BlobError) return fromBlobError(error);
  // The statement was rolled back: the client may repeat the request.
  if (isDatabaseUnavailable(error) || isRolledBack(error))
    return new PalestraError('database_unavailable', { retryAfterSeconds: 1, cause: error });
  if (isUnstorableText(error)) {
    const detail = 'The request has text that cannot be stored: a NUL character, or half of a surrogate pair.';
    return new PalestraError('invalid_request', { detail, cause: error });
  }
  const status = error instanceof HttpException ? error.getStatus() : (error as { statusCode?: number }).statusCode;
  if (status === 404) return routes.knowsPath(request.url) ? new PalestraError('method_not_allowed') : new PalestraError('route_not_found');
  if (status === 413) return new PalestraError('body_too_large', { cause: error });
  if (status === 405) return new PalestraError('method_not_allowed');
  if (status !== undefined && status >= 400 && status < 500) {
    return new PalestraError('invalid_request', { detail: (error as Error).message, cause: error });
  }
  return new PalestraError('internal_error', { cause: error });
}

function fromBlobError(error: BlobError): PalestraError {
  switch (error.kind) {
    case 'not_found':
      return new PalestraError('file_not_found', { cause: error });
    case 'full':
      return new PalestraError('storage_full', { retryAfterSeconds: 10, cause: error });
    case 'unavailable':
      return new PalestraError('storage_unavailable', { retryAfterSeconds: 1, cause: error });
    default:
      return new PalestraError('invalid_request', { detail: error.message, cause: error });
  }
}
