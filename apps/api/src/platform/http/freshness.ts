import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, UseInterceptors } from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STALE_MS } from '@palestra/rollouts';
import { EMPTY, map, type Observable } from 'rxjs';

/** The state that a response depends on. */
export interface ReadState {
  /** Changes whenever the response may change. */
  mark: string;
  asOf: Date | null;
  version: string | null;
  /** When the last event arrived. */
  lastAt: Date;
  /** Rollouts whose newest events are not in the answer; null = it is complete. */
  pending: number | null;
}

/** `live`, `complete` and `stale` depend on the clock for this long after the last event. Meanwhile responses are valid for ten seconds. */
const RESTLESS_MS = 2 * STALE_MS;
const TICK_MS = 10_000;

/**
 * Caching headers of reads: a weak `ETag` of the state and the URL, 304 for a client that has it, `x-data-as-of` (time of the newest event
 * in the response) and `x-data-version`. `stateOf` loads the subject once and passes it to the handler.
 */
export abstract class Freshness implements NestInterceptor {
  /** Loads the subject of the route and leaves it on the request. Throws when it does not exist or the caller may not read it. */
  protected abstract stateOf(request: FastifyRequest, context: ExecutionContext): Promise<ReadState>;

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    const state = await this.stateOf(request, context);
    if (state.asOf) reply.header('x-data-as-of', state.asOf.toISOString());
    if (state.version !== null) reply.header('x-data-version', state.version);
    if (state.pending !== null) reply.header('x-data-pending', state.pending);
    reply.header('cache-control', 'private, no-cache');
    // A guest's answer lacks what the link does not cover: it must not be taken for the one of a member.
    const tag = tagOf([state.mark, tickOf(state.lastAt), request.url, request.share === undefined ? '' : 'guest']);
    if (state.pending === null && matches(request, tag)) {
      notModified(reply, tag);
      return EMPTY;
    }
    return next.handle().pipe(
      map((body) => {
        // An incomplete response must not be cached.
        if (state.pending === null && !isIncomplete(body) && !reply.sent) reply.header('etag', tag);
        return body as unknown;
      }),
    );
  }
}

/** Caching headers of data without a version: the tag is that of the response. */
@Injectable()
class ResponseEtagInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    return next.handle().pipe(map((body) => withBodyTag(body, request, reply)));
  }
}

/** For routes that read data of a whole organisation: the ETag is that of the response. */
export const CacheByResponse = () => UseInterceptors(ResponseEtagInterceptor);

function withBodyTag(body: unknown, request: FastifyRequest, reply: FastifyReply): unknown {
  const tag = tagOf([JSON.stringify(body)]);
  reply.headers({ 'x-data-as-of': new Date().toISOString(), 'cache-control': 'private, no-cache' });
  if (isIncomplete(body)) return body;
  reply.header('etag', tag);
  if (!matches(request, tag)) return body;
  notModified(reply, tag);
  return undefined;
}

/** Uses the raw response, because Nest would set the status of the route again. */
function notModified(reply: FastifyReply, tag: string): void {
  reply.header('etag', tag).hijack();
  reply.raw.writeHead(304, reply.getHeaders() as Record<string, string>).end();
}

const isIncomplete = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && (body as { incomplete?: unknown }).incomplete === true;
const tickOf = (lastAt: Date): string => {
  const now = Date.now();
  return now - lastAt.getTime() < RESTLESS_MS ? String(Math.floor(now / TICK_MS)) : '';
};
const tagOf = (parts: readonly string[]): string => `W/"${createHash('sha256').update(parts.join('\n')).digest('base64url').slice(0, 27)}"`;

/** Weak comparison (RFC 9110, 8.8.3.2). */
function matches(request: FastifyRequest, tag: string): boolean {
  const header = request.headers['if-none-match'];
  const opaque = (text: string) => text.trim().replace(/^W\//, '');
  return header !== undefined && (header.trim() === '*' || header.split(',').some((one) => opaque(one) === opaque(tag)));
}
