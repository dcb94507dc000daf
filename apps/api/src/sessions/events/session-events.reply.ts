import type { FastifyReply, FastifyRequest } from 'fastify';
import { encodeSseEvent, encodeSseHeartbeat, SSE_HEADERS, SSE_HEARTBEAT_MS } from '@palestra/kit/sse';
import { type SessionView, stringifyJson } from '@palestra/protocol';
import { type EventPosition, formatPosition } from './session-events.watcher.ts';
import type { SessionEvents, SessionNews } from './session-events.service.ts';

/** A reader that takes nothing is cut; it comes back with the id of the last event that it read. */
const MAX_PENDING_BYTES = 4 * 1024 * 1024;

/**
 * Streams a session's events: `session` with the session whenever it changed, `call` with a call when it begins and when it ends,
 * `end` with the session when nothing more will come. Every id names a position that a reader may come back to: of what is told at once, only
 * the last has the new one, so that nothing is missed by a reader that is cut between them.
 */
export function streamSession(
  request: FastifyRequest,
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
  const tell = async ({ before, position, session, calls, over }: SessionNews) => {
    // Purged meanwhile, or the database is away: the stream ends without `end`, and its reader asks again.
    const view = session || over ? await watching.view().catch(() => null) : null;
    if (raw.destroyed) return;
    if ((session || over) && view === null) return void raw.destroy();
    const told: [event: string, value: unknown][] = calls.map((call) => ['call', call]);
    if (session) told.unshift(['session', view]);
    if (over) told.push(['end', view]);
    for (const [index, [event, value]] of told.entries()) send(index === told.length - 1 ? position : before, event, value);
    if (over) raw.end();
  };
  const leave = watching.events.watch(watching.sid, watching.from, tell);
  // Not the request's: that closes when its body has been read.
  raw.once('close', () => {
    clearInterval(heartbeat);
    leave();
  });
  if (request.raw.socket.destroyed) raw.destroy();
}
