import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Socket } from 'node:net';

/** A connection that its client closes this soon after an answer was not closed for lack of work. */
const SUSPICIOUS_MS = 2_000;
/** The official clients' HTTP library, which keeps its connections open for later requests. */
const POOLING_CLIENT = /aiohttp/i;

type Told = (how: 'delivered' | 'undelivered') => void;

interface Connection {
  requests: number;
  /** The answer that was written last, until it is known to have been read. */
  unread: { told: Told; pooling: boolean; timer: NodeJS.Timeout } | null;
}

const connections = new WeakMap<Socket, Connection>();

function settle(connection: Connection, how: 'delivered' | 'undelivered'): void {
  const { unread } = connection;
  connection.unread = null;
  if (unread === null) return;
  clearTimeout(unread.timer);
  unread.told(how);
}

/** To be called once for each request, before `onDelivery`: a request proves that the answer before it was read. */
export function countRequest(request: FastifyRequest): void {
  const { socket } = request.raw;
  const known = connections.get(socket);
  if (known !== undefined) {
    known.requests += 1;
    settle(known, 'delivered');
    return;
  }
  const connection: Connection = { requests: 1, unread: null };
  connections.set(socket, connection);
  socket.once('close', (hadError) => {
    const broke = connection.unread !== null && (hadError || connection.unread.pooling);
    settle(connection, broke ? 'undelivered' : 'delivered');
  });
}

/**
 * Tells, once, whether the client has read this answer to its end, as far as a server can know (docs/adr/0007). It broke when the
 * connection closed before the last byte was handed over; and when it was closed right afterwards, with a reset, or by a client
 * that is known to keep connections for its next request.
 */
export function onDelivery(request: FastifyRequest, reply: FastifyReply, told: Told): void {
  const { socket } = request.raw;
  const stream = reply.raw;
  const connection = connections.get(socket);
  if (socket.destroyed || connection === undefined) return told('undelivered');
  let open = true;
  stream.once('finish', () => {
    if (!open) return;
    open = false;
    if (socket.destroyed) return told('undelivered');
    const pooling = connection.requests > 1 || POOLING_CLIENT.test(request.headers['user-agent'] ?? '');
    const timer = setTimeout(() => settle(connection, 'delivered'), SUSPICIOUS_MS);
    timer.unref();
    settle(connection, 'delivered');
    connection.unread = { told, pooling, timer };
  });
  stream.once('close', () => {
    if (!open) return;
    open = false;
    told('undelivered');
  });
}
