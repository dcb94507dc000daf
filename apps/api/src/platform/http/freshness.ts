import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, UseInterceptors } from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STALE_MS } from '@palestra/rollouts';
import { EMPTY, map, type Observable } from 'rxjs';

/** What an answer follows from. */
export interface ReadState {
  /** Changes whenever the answer may. */
  mark: string;
  asOf: Date | null;
  version: string | null;
  /** Of the last event that came. */
  lastAt: Date;
}

/** `live`, `complete` and `stale` follow from the clock, for so long after the last event; within it answers keep for ten seconds. */
const RESTLESS_MS = 2 * STALE_MS;
const TICK_MS = 10_000;

/**
 * Freshness of reads: a weak `ETag` from the version of what is read and the URL, 304 for a client that has it, `x-data-as-of` (the
 * newest event that is in the answer) and `x-data-version`. The subject is found once, by `stateOf`, and handed on to the handler.
 */
export abstract class Freshness implements NestInterceptor {
  /** Finds what the route reads, and leaves it on the request. Throws when the caller may not read it, or it is not there. */
  protected abstract stateOf(request: FastifyRequest, context: ExecutionContext): Promise<ReadState>;

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    const state = await this.stateOf(request, context);
    if (state.asOf) reply.header('x-data-as-of', state.asOf.toISOString());
    if (state.version !== null) reply.header('x-data-version', state.version);
    reply.header('cache-control', 'private, no-cache');
    const tag = tagOf([state.mark, tickOf(state.lastAt), request.url]);
    if (matches(request, tag)) {
      notModified(reply, tag);
      return EMPTY;
    }
    return next.handle().pipe(
      map((body) => {
        // What is not all there yet must be asked for again.
        if (!isIncomplete(body) && !reply.sent) reply.header('etag', tag);
        return body as unknown;
      }),
    );
  }
}

/** Freshness of what no version stands for: the tag of the answer itself. */
@Injectable()
class AnswerFreshness implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    return next.handle().pipe(map((body) => withBodyTag(body, request, reply)));
  }
}

/** The route reads of a whole organisation: its ETag is that of its answer. */
export const ReadsAnswer = () => UseInterceptors(AnswerFreshness);

function withBodyTag(body: unknown, request: FastifyRequest, reply: FastifyReply): unknown {
  const tag = tagOf([JSON.stringify(body)]);
  reply.headers({ 'x-data-as-of': new Date().toISOString(), 'cache-control': 'private, no-cache' });
  if (isIncomplete(body)) return body;
  reply.header('etag', tag);
  if (!matches(request, tag)) return body;
  notModified(reply, tag);
  return undefined;
}

/** Sent by hand: Nest would set the status of the route again. */
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
  const given = request.headers['if-none-match'];
  const opaque = (text: string) => text.trim().replace(/^W\//, '');
  return given !== undefined && (given.trim() === '*' || given.split(',').some((one) => opaque(one) === opaque(tag)));
}
