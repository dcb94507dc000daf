import type { FastifyReply, FastifyRequest } from 'fastify';
import { encodeSseEvent, encodeSseHeartbeat, encodeSseResult, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/protocol';
import { type CallOutcome, errorOfOutcome, type OpenCall } from '@palestra/session';
import { onDelivery } from './delivery.ts';
import { CALL_HEADER, FORWARDED } from './forwarder.ts';

/** The only file that writes to a raw response (openreward-wire.md 2.4). Every stream ends with `end` or `error`. */

/** A finished stream: the SID as `task_id`, then an empty `end`. */
export function sendReservation(reply: FastifyReply, sid: string): void {
  reply.hijack();
  reply.raw.writeHead(200, SSE_HEADERS);
  reply.raw.end(encodeSseEvent('task_id', sid) + encodeSseEvent('end', ''));
}

export interface StreamOptions {
  /** So long the stream stays unopened for a refusal that must be an HTTP status; 0 = not at all. */
  holdForRefusalMs: number;
}

/** Streams a call: its task id before anything runs, heartbeats while it does, its outcome. */
export async function streamCall(request: FastifyRequest, reply: FastifyReply, call: OpenCall, options: StreamOptions): Promise<void> {
  // Not `request.raw.destroyed`: a body that has been read to its end counts as destroyed, too.
  if (request.raw.socket.destroyed) {
    call.abandon();
    reply.hijack();
    return;
  }
  if (options.holdForRefusalMs > 0) {
    const early = await within(call.outcome(), options.holdForRefusalMs);
    if (early?.type === 'refused') throw errorOfOutcome(early);
  }
  reply.hijack();
  const stream = reply.raw;
  const view = call.stream();
  onDelivery(request, reply, (how) => (how === 'broke' ? view.broke() : view.delivered()));
  // A client that vanishes must not become an uncaught error; its call goes on and can be resumed.
  stream.on('error', () => {});
  const forwarded = request.headers[FORWARDED] !== undefined && call.taskId !== null;
  stream.writeHead(200, forwarded ? { ...SSE_HEADERS, [CALL_HEADER]: call.taskId! } : SSE_HEADERS);
  if (call.taskId !== null) stream.write(encodeSseEvent('task_id', call.taskId));
  const heartbeat = setInterval(() => stream.write(encodeSseHeartbeat(new Date())), SSE_HEARTBEAT_MS);
  const outcome = await call.outcome();
  clearInterval(heartbeat);
  stream.end(encodeOutcome(outcome));
}

function encodeOutcome(outcome: CallOutcome): string {
  if (outcome.type === 'result') return encodeSseResult(outcome.text);
  return encodeSseEvent('error', outcome.type === 'tool_failed' ? outcome.message : outcome.detail);
}

function within<T>(work: Promise<T>, limitMs: number): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(null), limitMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
