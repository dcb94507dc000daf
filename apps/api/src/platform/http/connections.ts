import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { PalestraError } from '@palestra/protocol';
import { ClientAddresses, networkOf } from './client-address.ts';

/** Interval of the checks. */
const SWEEP_MS = 2_000;
/** A client sends its headers within this time. */
export const HEADERS_TIMEOUT_MS = 15_000;
/** Time for the body of an unauthenticated client, at most 64 KB. */
const UNAUTHENTICATED_BODY_MS = 15_000;
/** Any other body has this long, and beyond it as long as its average rate is at least `MIN_BYTES_PER_SECOND`. */
const BODY_GRACE_MS = 30_000;
const MIN_BYTES_PER_SECOND = 1_024;
/** Maximum of connections per address without a valid key. */
const MAX_UNAUTHENTICATED = 16_384;
/** Maximum of these that wait longer than `IDLE_MS`: with half a request, and idle between requests. */
const MAX_WAITING = { half: 256, idle: 2_048 };
/** An honest client has sent its request by then. */
const IDLE_MS = 5_000;

interface Connection {
  socket: Socket;
  network: string;
  /** When its request began, or it was opened. */
  since: number;
  /** The last request whose headers are complete. */
  request: IncomingMessage | null;
  response: ServerResponse | null;
  bytesBefore: number;
  /** It sent a valid key, browser session or signature. */
  isAuthenticated: boolean;
  /** Ends its count as an unauthenticated connection. */
  leave: () => void;
}

const connections = new WeakMap<Socket, Connection>();

/** Marks the connection of a request as authenticated, because the request had a valid credential or signature. */
export function markAuthenticated({ socket }: Pick<IncomingMessage, 'socket'>): void {
  const connection = connections.get(socket);
  if (connection === undefined || connection.isAuthenticated) return;
  connection.isAuthenticated = true;
  connection.leave();
}

/**
 * Ends connections that a client occupies without a request: headers or bodies that do not come or are very slow, and idle unauthenticated
 * ones above a number per address. Responses may take any time, and uploads as long as data arrives.
 */
export function watchConnections(server: Server, addresses: ClientAddresses, now: () => number = Date.now): void {
  const open = new Set<Connection>();
  const unauthenticated = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const network = networkOf(address);
    // All clients behind a proxy share its address.
    const isCounted = !addresses.isProxy(address);
    const count = (unauthenticated.get(network) ?? 0) + 1;
    if (isCounted && count > MAX_UNAUTHENTICATED) return void socket.destroy();
    if (isCounted) unauthenticated.set(network, count);
    let isListed = isCounted;
    const leave = () => {
      if (isListed) forget(unauthenticated, network);
      isListed = false;
    };
    const request = { request: null, response: null, bytesBefore: 0 };
    const connection: Connection = { socket, network: isCounted ? network : '', since: now(), ...request, isAuthenticated: false, leave };
    open.add(connection);
    connections.set(socket, connection);
    socket.once('close', () => {
      open.delete(connection);
      leave();
    });
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket);
    if (connection === undefined) return;
    connection.request = request;
    connection.response = response;
    connection.since = now();
    connection.bytesBefore = request.socket.bytesRead;
  });
  // WebSockets have their own pings.
  server.on('upgrade', (_request: IncomingMessage, socket: Socket) => {
    const connection = connections.get(socket);
    if (connection !== undefined) open.delete(connection);
  });
  const sweep = setInterval(() => sweepAll(open, now()), SWEEP_MS).unref();
  server.once('close', () => clearInterval(sweep));
}

function sweepAll(open: Set<Connection>, now: number): void {
  const waiting = new Map<string, Record<keyof typeof MAX_WAITING, Connection[]>>();
  for (const connection of open) {
    if (isLate(connection, now)) end(connection);
    else if (!connection.isAuthenticated && connection.network !== '' && now - connection.since > IDLE_MS) {
      const kind = waitsFor(connection);
      if (kind === null) continue;
      const others = waiting.get(connection.network) ?? { half: [], idle: [] };
      waiting.set(connection.network, others);
      others[kind].push(connection);
    }
  }
  // Oldest first, because a Set keeps its order.
  for (const { half, idle } of waiting.values())
    for (const connection of [...half.slice(0, -MAX_WAITING.half), ...idle.slice(0, -MAX_WAITING.idle)]) end(connection);
}

/** Whether we wait for the rest of a request or for the next one; null while the service processes a request. */
function waitsFor({ request, response }: Connection): keyof typeof MAX_WAITING | null {
  if (request === null || !request.complete) return 'half';
  return response!.writableEnded ? 'idle' : null;
}

/** Whether its headers or body are overdue. Node checks the headers of a second request (`headersTimeout`). */
function isLate(connection: Connection, now: number): boolean {
  const { socket, request, response, bytesBefore, isAuthenticated } = connection;
  if (request === null) return now - connection.since > HEADERS_TIMEOUT_MS;
  if (request.complete) return false;
  // The client is not slow: our handler has not read the received bytes yet.
  if (request.readableLength > 0 && !response!.writableEnded) connection.since += SWEEP_MS;
  const age = now - connection.since;
  if (!isAuthenticated || response!.writableEnded) return age > UNAUTHENTICATED_BODY_MS;
  return age > BODY_GRACE_MS + ((socket.bytesRead - bytesBefore) / MIN_BYTES_PER_SECOND) * 1_000;
}

function end({ socket, response }: Connection): void {
  if (socket.destroyed) return;
  if (response?.headersSent) return void socket.destroy();
  const detail = 'The request did not arrive in time.';
  socket.end(rawResponse(new PalestraError('invalid_request', { status: 408, detail })), () => socket.destroy());
}

/** A response before there is a request object; the connection ends with it. */
export function rawResponse(error: PalestraError): string {
  const body = JSON.stringify(error.toBody());
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`;
}

function forget(unauthenticated: Map<string, number>, network: string): void {
  const left = (unauthenticated.get(network) ?? 1) - 1;
  if (left === 0) unauthenticated.delete(network);
  else unauthenticated.set(network, left);
}
