import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  SetMetadata,
  UseInterceptors,
} from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STALE_MS } from '@palestra/rollouts';
import type { Caller } from '@palestra/session';
import { EMPTY, map, type Observable } from 'rxjs';
import { RolloutScopes } from '../rollouts/rollout-scope.ts';
import { RunScopes } from './run-scope.ts';

const SUBJECT = 'palestra:reads';
type Subject = { of: 'run' | 'rollout'; parameter: string } | { of: 'answer' };

const reads = (subject: Subject) => applyDecorators(SetMetadata(SUBJECT, subject), UseInterceptors(Freshness));
/** The route reads one run, which the handler gets as `@OfRun()`. */
export const ReadsRun = (parameter = 'run') => reads({ of: 'run', parameter });
/** The route reads one rollout, which the handler gets as `@OfRollout()`. */
export const ReadsRollout = (parameter = 'id') => reads({ of: 'rollout', parameter });
/** The route reads of a whole organisation: its ETag is that of its answer. */
export const ReadsAnswer = () => reads({ of: 'answer' });

/** What an answer follows from. */
interface State {
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
 * newest event that is in the answer) and `x-data-version`. The subject is found once, here, and handed on to the handler.
 */
@Injectable()
export class Freshness implements NestInterceptor {
  constructor(
    private readonly runs: RunScopes,
    private readonly rollouts: RolloutScopes,
  ) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    const subject = Reflect.getMetadata(SUBJECT, context.getHandler()) as Subject;
    const state = subject.of === 'answer' ? null : await this.#state(subject, request);
    if (state === null) return next.handle().pipe(map((body) => withBodyTag(body, request, reply)));
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

  async #state(subject: { of: 'run' | 'rollout'; parameter: string }, request: FastifyRequest): Promise<State> {
    const key = (request.params as Record<string, string>)[subject.parameter] ?? '';
    const caller = request.caller as Caller;
    if (subject.of === 'run') {
      const run = await this.runs.open(caller, key);
      request.run = run;
      return {
        mark: `${run.seq}.${run.version}.${run.updated_at.getTime()}`,
        asOf: run.as_of,
        version: run.version,
        lastAt: run.updated_at,
      };
    }
    const rollout = await this.rollouts.open(caller, key);
    request.rollout = rollout;
    const { head, runVersion } = rollout;
    return { mark: `${head.seq}.${head.revision}.${runVersion}`, asOf: head.last_at, version: runVersion, lastAt: head.last_at };
  }
}

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
