import type { FastifyReply, FastifyRequest } from 'fastify';
import { encodeSseEvent, encodeSseHeartbeat, encodeSseResult, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/kit/sse';
import { PalestraError } from '@palestra/protocol';
import { type CallOutcome, errorOfOutcome, type OpenCall, type QueuePosition } from '@palestra/session';
import { onDelivery } from '../http/delivery.ts';
import { CALL_HEADER, FORWARDED } from '../http/forwarder.ts';

/** The only file that writes to a raw response (openreward-wire.md 2.4). Every stream ends with `end` or `error`. */

/** So long a client without a slot is held before its stream opens: what is refused until then is an HTTP status. */
const QUEUE_HOLD_MS = 10_000;

/** Waits for a slot of the session; tells the client's place whenever it changes. */
export type Admit = (signal: AbortSignal, onPosition: (place: QueuePosition) => void) => Promise<void>;

/**
 * The SID as `task_id`, then, when it has a slot, an empty `end`. A client that waits hears heartbeats, and with `showPlace` events
 * `queue` with its place. One that leaves loses its turn until it comes back with its SID.
 */
export async function streamReservation(reply: FastifyReply, sid: string, admit: Admit | null, showPlace: boolean): Promise<void> {
  const stream = reply.raw;
  const head = encodeSseEvent('task_id', sid);
  let opened = false;
  const open = () => {
    if (opened) return;
    opened = true;
    reply.hijack();
    stream.on('error', () => {});
    stream.writeHead(200, SSE_HEADERS);
    stream.write(head);
  };
  if (admit !== null) {
    const gone = new AbortController();
    stream.once('close', () => gone.abort(new PalestraError('call_abandoned')));
    const opening = setTimeout(open, showPlace ? 0 : QUEUE_HOLD_MS);
    const heartbeat = setInterval(() => opened && stream.write(encodeSseHeartbeat(new Date())), SSE_HEARTBEAT_MS);
    let shown = '';
    try {
      await admit(gone.signal, (place) => {
        const text = encodeSseEvent('queue', placeText(place));
        if (!showPlace || text === shown || stream.destroyed) return;
        shown = text;
        open();
        stream.write(text);
      });
    } catch (error) {
      if (!opened && !gone.signal.aborted) throw error;
      open();
      // Broken off, so that the client comes back with its SID, to another process.
      if (error instanceof PalestraError && error.code === 'shutting_down') stream.destroy();
      // An error that came too late for a status: what the client's retries look for is in its words.
      if (!stream.destroyed) stream.end(encodeSseEvent('error', error instanceof PalestraError ? error.message : 'Internal Server Error'));
      return;
    } finally {
      clearTimeout(opening);
      clearInterval(heartbeat);
    }
  }
  if (opened) return void stream.end(encodeSseEvent('end', ''));
  reply.hijack();
  stream.writeHead(200, SSE_HEADERS);
  stream.end(head + encodeSseEvent('end', ''));
}

const placeText = ({ position, waiting, estimatedWaitMs }: QueuePosition): string =>
  JSON.stringify({ position, waiting, estimated_wait_s: estimatedWaitMs === null ? null : Math.ceil(estimatedWaitMs / 1_000) });

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
  onDelivery(request, reply, (how) => (how === 'undelivered' ? view.undelivered() : view.delivered()));
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
