import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Socket } from 'node:net';

/** A client that closes its connection this soon after an answer probably did not receive it. */
const SUSPICIOUS_CLOSE_MS = 2_000;
/** Time to read the events of sockets that came during a pause of this process. */
const EVENTS_MS = 100;
/** The HTTP library of the official clients, which keeps connections open for later requests. */
const POOLING_CLIENT = /aiohttp/i;

type Delivery = 'delivered' | 'undelivered';
type OnDelivery = (delivery: Delivery) => void;

interface Unread {
  report: OnDelivery;
  isPooling: boolean;
  timer: NodeJS.Timeout;
}
interface Connection {
  requests: number;
  /** The last answer, until we know whether the client has read it. */
  unread: Unread | null;
}

const connections = new WeakMap<Socket, Connection>();

function settle(connection: Connection, delivery: Delivery): void {
  const { unread } = connection;
  connection.unread = null;
  if (unread === null) return;
  clearTimeout(unread.timer);
  unread.report(delivery);
}

/** Call once for each request, before `onDelivery`: a new request proves that the client has read the answer before it. */
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
    const isUndelivered = connection.unread !== null && (hadError || connection.unread.isPooling);
    settle(connection, isUndelivered ? 'undelivered' : 'delivered');
  });
}

/**
 * Reports once whether the client has read this answer to its end, as far as a server can know (docs/adr/0007). It is undelivered when the
 * connection closed before the last byte was written, or right afterwards with a reset, or right afterwards by a client that otherwise keeps
 * connections for its next request.
 */
export function onDelivery(request: FastifyRequest, reply: FastifyReply, report: OnDelivery): void {
  const { socket } = request.raw;
  const stream = reply.raw;
  const connection = connections.get(socket);
  if (socket.destroyed || connection === undefined) return report('undelivered');
  let open = true;
  stream.once('finish', () => {
    if (!open) return;
    open = false;
    if (socket.destroyed) return report('undelivered');
    const isPooling = connection.requests > 1 || POOLING_CLIENT.test(request.headers['user-agent'] ?? '');
    settle(connection, 'delivered');
    // After a pause of this process a timer is due before the events of sockets are read, and the close may be among them.
    const settleAfterEvents = () => (unread.timer = setTimeout(() => settle(connection, 'delivered'), EVENTS_MS).unref());
    const unread: Unread = { report, isPooling, timer: setTimeout(settleAfterEvents, SUSPICIOUS_CLOSE_MS).unref() };
    connection.unread = unread;
  });
  stream.once('close', () => {
    if (!open) return;
    open = false;
    report('undelivered');
  });
}
