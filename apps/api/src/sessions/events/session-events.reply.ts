import type { FastifyReply } from 'fastify';
import { encodeSseEvent, encodeSseHeartbeat, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/kit/sse';
import { type SessionView, stringifyJson } from '@palestra/protocol';
import { onClosed } from '../../platform/http/on-closed.ts';
import { type EventPosition, formatPosition } from './session-event-cursor.ts';
import type { SessionEvents, SessionChanges } from './session-events.service.ts';

/** A client that does not read is disconnected. It can resume with the id of the last event that it read. */
const MAX_PENDING_BYTES = 4 * 1024 * 1024;

/**
 * Streams a session's events: `session` with the session whenever it changed, `call` with a call when it begins and when it ends, `end` with the
 * session after the last event. Every event id is a position at which a client can resume. Of events that are sent together only the last one has
 * the new position, so that a client that is disconnected between them misses nothing.
 */
export function streamSession(
  reply: FastifyReply,
  watching: {
    events: SessionEvents;
    sid: string;
    from: EventPosition;
    view: () => Promise<SessionView>;
  },
): void {
  reply.hijack();
  const { raw } = reply;
  raw.on('error', () => {});
  raw.writeHead(200, SSE_HEADERS);
  raw.write(encodeSseHeartbeat(new Date()));
  const send = (position: EventPosition, event: string, value: unknown) => {
    if (raw.writableLength > MAX_PENDING_BYTES) raw.destroy();
    else raw.write(`id: ${formatPosition(position)}\r\n${encodeSseEvent(event, stringifyJson(value))}`);
  };
  const heartbeat = setInterval(() => raw.write(encodeSseHeartbeat(new Date())), SSE_HEARTBEAT_MS);
  const tell = async ({ before, position, session, calls, over }: SessionChanges) => {
    // The session was purged or the database is unavailable: the stream ends without `end`, and the client asks again.
    const view = session || over ? await watching.view().catch(() => null) : null;
    if (raw.destroyed) return;
    if ((session || over) && view === null) return void raw.destroy();
    const frames: [event: string, value: unknown][] = calls.map((call) => ['call', call]);
    if (session) frames.unshift(['session', view]);
    if (over) frames.push(['end', view]);
    for (const [index, [event, value]] of frames.entries()) send(index === frames.length - 1 ? position : before, event, value);
    if (over) raw.end();
  };
  const leave = watching.events.watch(watching.sid, watching.from, tell);
  // Not the `close` of the request, which comes when its body has been read.
  onClosed(raw, () => {
    clearInterval(heartbeat);
    leave();
  });
}
