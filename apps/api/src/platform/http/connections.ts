import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { PalestraError } from '@palestra/protocol';
import { ClientAddresses, networkOf } from './client-address.ts';

/** When connections are looked at. */
const SWEEP_MS = 2_000;
/** A client sends its headers within this time. */
export const HEADERS_TIMEOUT_MS = 15_000;
/** The body of a stranger, who may send 64 KB, is there within this time. */
const STRANGER_BODY_MS = 15_000;
/** Any other body may take so long, and then comes at least so fast on average. */
const BODY_GRACE_MS = 30_000;
const MIN_BYTES_PER_SECOND = 1_024;
/** Connections of an address that showed no valid key: so many at all. */
const MAX_STRANGERS = 16_384;
/** Of these, so many that have sent half a request, and so many that keep a connection for the next one, for longer than `IDLE_MS`. */
const MAX_WAITING = { half: 256, idle: 2_048 };
/** A client that means it has sent its request by then. */
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
  /** It has shown a valid key, browser session or signature. */
  isKnown: boolean;
  /** It is counted among strangers no more. */
  leave: () => void;
}

const connections = new WeakMap<Socket, Connection>();

/** A request of this connection was allowed by what it carried: it is none of a stranger any more. */
export function markKnown({ socket }: Pick<IncomingMessage, 'socket'>): void {
  const connection = connections.get(socket);
  if (connection === undefined || connection.isKnown) return;
  connection.isKnown = true;
  connection.leave();
}

/**
 * Ends connections whose client holds them without a request: headers or bodies that do not come or only drip, and idle ones of strangers beyond a
 * number per address. Answers take as long as they do, and uploads as long as they move.
 */
export function watchConnections(server: Server, addresses: ClientAddresses, now: () => number = Date.now): void {
  const open = new Set<Connection>();
  const strangers = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const network = networkOf(address);
    // All clients of a proxy have its address.
    const isCounted = !addresses.isProxy(address);
    const count = (strangers.get(network) ?? 0) + 1;
    if (isCounted && count > MAX_STRANGERS) return void socket.destroy();
    if (isCounted) strangers.set(network, count);
    let isStranger = isCounted;
    const leave = () => {
      if (isStranger) forget(strangers, network);
      isStranger = false;
    };
    const request = { request: null, response: null, bytesBefore: 0 };
    const connection: Connection = { socket, network: isCounted ? network : '', since: now(), ...request, isKnown: false, leave };
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
  // Sockets have pings of their own.
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
    else if (!connection.isKnown && connection.network !== '' && now - connection.since > IDLE_MS) {
      const kind = waitsFor(connection);
      if (kind === null) continue;
      const others = waiting.get(connection.network) ?? { half: [], idle: [] };
      waiting.set(connection.network, others);
      others[kind].push(connection);
    }
  }
  // Oldest first, as they stand in the set.
  for (const { half, idle } of waiting.values())
    for (const connection of [...half.slice(0, -MAX_WAITING.half), ...idle.slice(0, -MAX_WAITING.idle)]) end(connection);
}

/** What its client is waited for to send: the rest of a request, or the next one; null while the service is at work. */
function waitsFor({ request, response }: Connection): keyof typeof MAX_WAITING | null {
  if (request === null || !request.complete) return 'half';
  return response!.writableEnded ? 'idle' : null;
}

/** Its headers or body should have come by now. Headers of a second request are Node's own concern (`headersTimeout`). */
function isLate(connection: Connection, now: number): boolean {
  const { socket, request, response, bytesBefore, isKnown } = connection;
  if (request === null) return now - connection.since > HEADERS_TIMEOUT_MS;
  if (request.complete) return false;
  // It is not the client that is slow: nobody has read yet what came.
  if (request.readableLength > 0 && !response!.writableEnded) connection.since += SWEEP_MS;
  const age = now - connection.since;
  if (!isKnown || response!.writableEnded) return age > STRANGER_BODY_MS;
  return age > BODY_GRACE_MS + ((socket.bytesRead - bytesBefore) / MIN_BYTES_PER_SECOND) * 1_000;
}

function end({ socket, response }: Connection): void {
  if (socket.destroyed) return;
  if (response?.headersSent) return void socket.destroy();
  const detail = 'The request did not come in time.';
  socket.end(rawAnswer(new PalestraError('invalid_request', { status: 408, detail })), () => socket.destroy());
}

/** An answer to what is no request yet; the connection ends with it. */
export function rawAnswer(error: PalestraError): string {
  const body = JSON.stringify(error.toBody());
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`;
}

function forget(strangers: Map<string, number>, network: string): void {
  const left = (strangers.get(network) ?? 1) - 1;
  if (left === 0) strangers.delete(network);
  else strangers.set(network, left);
}
