import type { FastifyReply, FastifyRequest } from 'fastify';
import { encodeSseEvent, encodeSseHeartbeat, encodeSseResult, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/kit/sse';
import { classifyCode, PalestraError } from '@palestra/protocol';
import { type CallOutcome, classifyOutcome, errorOfOutcome, type OpenCall, type QueuePosition } from '@palestra/session';
import { onDelivery } from '../http/delivery.ts';
import { CALL_HEADER, FORWARDED } from '../http/forwarder.ts';

/** The event streams of ORS (docs/reference/ors.md#event-streams). Every stream ends with `end` or `error`. */

/** How long a client without a slot waits before its stream opens. A refusal until then is an HTTP status. */
const QUEUE_HOLD_MS = 10_000;

/** Waits for a slot of the session. Calls `onPosition` whenever the client's position in the queue changes. */
export type Admit = (signal: AbortSignal, onPosition: (position: QueuePosition) => void) => Promise<void>;

export interface ReservationOptions {
  /** null: the client does not wait for a slot. */
  admit: Admit | null;
  /** Events `queue` with the position of the client. */
  showPosition: boolean;
  /** See `StreamOptions`. */
  hasFailureEvents: boolean;
  /** Called when the client leaves before it got its SID: it will not return. */
  onAbandoned?: () => void;
}

/**
 * Sends the SID as `task_id`, then an empty `end` when the session has a slot. A waiting client gets heartbeats. A client that leaves gets no
 * slot until it returns with its SID.
 */
export async function streamReservation(reply: FastifyReply, sid: string, options: ReservationOptions): Promise<void> {
  const { admit, showPosition, hasFailureEvents } = options;
  const stream = reply.raw;
  const head = encodeSseEvent('task_id', sid);
  let opened = false;
  let isRefused = false;
  const open = () => {
    if (opened) return;
    opened = true;
    reply.hijack();
    stream.on('error', () => {});
    stream.writeHead(200, SSE_HEADERS);
    stream.write(head);
  };
  if (admit !== null) {
    const disconnected = new AbortController();
    stream.once('close', () => {
      disconnected.abort(new PalestraError('call_abandoned'));
      if (!opened && !isRefused) options.onAbandoned?.();
    });
    const opening = setTimeout(open, showPosition ? 0 : QUEUE_HOLD_MS);
    const heartbeat = setInterval(() => opened && stream.write(encodeSseHeartbeat(new Date())), SSE_HEARTBEAT_MS);
    let shown = '';
    try {
      await admit(disconnected.signal, (position) => {
        const text = encodeSseEvent('queue', positionText(position));
        if (!showPosition || text === shown || stream.destroyed) return;
        shown = text;
        open();
        stream.write(text);
      });
    } catch (error) {
      if (!opened && !disconnected.signal.aborted) {
        isRefused = true;
        throw error;
      }
      open();
      // Cut the connection, so that the client returns with its SID, to another process.
      if (error instanceof PalestraError && error.code === 'shutting_down') stream.destroy();
      const known = error instanceof PalestraError ? error : new PalestraError('internal_error');
      // Too late for a status. The message contains the words by which clients decide to retry.
      if (!stream.destroyed) stream.end(hasFailureEvents ? encodeFailure(failureOf(known)) : encodeSseEvent('error', known.message));
      return;
    } finally {
      clearTimeout(opening);
      clearInterval(heartbeat);
    }
  }
  if (opened) return void stream.end(encodeSseEvent('end', ''));
  opened = true;
  reply.hijack();
  stream.writeHead(200, SSE_HEADERS);
  stream.end(head + encodeSseEvent('end', ''));
}

const positionText = ({ position, waiting, estimatedWaitMs }: QueuePosition): string =>
  JSON.stringify({ position, waiting, estimated_wait_s: estimatedWaitMs === null ? null : Math.ceil(estimatedWaitMs / 1_000) });

export interface StreamOptions {
  /** How long to wait, before the stream opens, for a refusal that must be an HTTP status; 0 for not at all. */
  holdForRefusalMs: number;
  /** A stream that fails ends with `failure` and its code (docs/sessions.md#failures-in-event-streams) in place of `error`. */
  hasFailureEvents: boolean;
}

/** Streams a call: its task id before the tool runs, heartbeats while it runs, then its outcome. */
export async function streamCall(request: FastifyRequest, reply: FastifyReply, call: OpenCall, options: StreamOptions): Promise<void> {
  // Not `request.raw.destroyed`, which is also true for a body that was read to its end.
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
  onDelivery(request, reply, (delivery) => (delivery === 'undelivered' ? view.undelivered() : view.delivered()));
  // A disconnect must not become an uncaught error. The call continues and can be resumed.
  stream.on('error', () => {});
  const forwarded = request.headers[FORWARDED] !== undefined && call.taskId !== null;
  stream.writeHead(200, forwarded ? { ...SSE_HEADERS, [CALL_HEADER]: call.taskId! } : SSE_HEADERS);
  if (call.taskId !== null) stream.write(encodeSseEvent('task_id', call.taskId));
  const heartbeat = setInterval(() => stream.write(encodeSseHeartbeat(new Date())), SSE_HEARTBEAT_MS);
  const outcome = await call.outcome();
  clearInterval(heartbeat);
  stream.end(encodeOutcome(outcome, options.hasFailureEvents));
}

function encodeOutcome(outcome: CallOutcome, hasFailureEvents: boolean): string {
  if (outcome.type === 'result') return encodeSseResult(outcome.text);
  if (hasFailureEvents) return encodeFailure(outcome.type === 'tool_failed' ? toolFailure(outcome) : failureOf(errorOfOutcome(outcome)));
  return encodeSseEvent('error', outcome.type === 'tool_failed' ? outcome.message : outcome.detail);
}

/** The data of an event `failure`. `code` is null for a tool that raised an error. */
interface Failure {
  code: string | null;
  status: number;
  failure_class: string;
  retryable: boolean;
  detail: string;
}

const toolFailure = (outcome: CallOutcome & { type: 'tool_failed' }): Failure => ({
  code: null,
  status: 500,
  failure_class: classifyOutcome(outcome),
  retryable: false,
  detail: outcome.message,
});

function failureOf({ code, status, retryable, message }: PalestraError): Failure {
  return { code, status, failure_class: classifyCode(code), retryable, detail: message };
}

const encodeFailure = (failure: Failure): string => encodeSseEvent('failure', JSON.stringify(failure));

function within<T>(work: Promise<T>, limitMs: number): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(null), limitMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
