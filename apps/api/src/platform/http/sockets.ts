import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, PalestraError } from '@palestra/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Holder, InFlight } from '../limits.ts';
import { takePathKey } from './credentials.ts';

/** The largest frame that any socket takes, bytes: what OpenEnv's clients take (openenv-wire.md 2.3). */
export const MAX_FRAME = 100 * 1024 * 1024;
const PING_MS = 20_000;
/** A peer that answered none of so many pings in a row is gone: half-open sockets must not hold slots. */
const MISSED_PINGS = 3;

export interface SocketRequest {
  raw: IncomingMessage;
  /** Without prefix key and query. */
  path: string;
  query: URLSearchParams;
  /** Named groups of the route's pattern, decoded. */
  params: Record<string, string>;
}

export interface SocketRoute {
  /** Matched against the whole path; its named groups are the parameters. */
  pattern: RegExp;
  /**
   * Before the upgrade: whatever this rejects with is the HTTP answer (401 for a bad key). `elsewhere` true: it has taken the raw socket
   * over. Its `context` is given to `open`; the socket is counted for `caller`.
   */
  accept(
    request: SocketRequest,
    socket: Duplex,
    head: Buffer,
  ): Promise<{ elsewhere: true } | { elsewhere: false; context: unknown; caller: Holder }>;
  open(socket: WebSocket, request: SocketRequest, context: unknown): void;
}

/** Web sockets of the one HTTP server: which route an upgrade is for, pings, and the end of all at shutdown. */
export class Sockets {
  readonly #routes: SocketRoute[] = [];
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME, perMessageDeflate: false, clientTracking: true });
  #pinging: NodeJS.Timeout | null = null;
  #inFlight: InFlight | null = null;

  /** `pingMs`: how often every peer is asked whether it is there. */
  constructor(readonly pingMs = PING_MS) {}

  add(route: SocketRoute): void {
    this.#routes.push(route);
  }

  /** `inFlight`: counts the sockets of each caller; null where nothing is limited. */
  listen(server: Server, inFlight: InFlight | null): void {
    this.#inFlight = inFlight;
    server.on('upgrade', (raw: IncomingMessage, socket: Duplex, head: Buffer) => {
      // A client that goes away in the middle is no error of ours.
      socket.on('error', () => {});
      this.#upgrade(raw, socket, head).catch((error: unknown) => refuse(socket, error));
    });
    this.#pinging = setInterval(() => this.#ping(), this.pingMs);
    this.#pinging.unref();
  }

  /** Sockets that are open now. */
  get size(): number {
    return this.#server.clients.size;
  }

  /** Sockets that are open now, with the headers of the request that opened each. */
  opened(): Map<WebSocket, IncomingHttpHeaders> {
    return new Map([...this.#server.clients].map((socket) => [socket, openedWith.get(socket) ?? {}]));
  }

  close(): void {
    if (this.#pinging !== null) clearInterval(this.#pinging);
    for (const socket of this.#server.clients) socket.close(1001);
    this.#server.close();
  }

  async #upgrade(raw: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { pathname, searchParams } = new URL(takePathKey(raw), 'http://palestra');
    for (const route of this.#routes) {
      const match = route.pattern.exec(pathname);
      if (match === null) continue;
      const params = Object.fromEntries(Object.entries(match.groups ?? {}).map(([name, value]) => [name, decode(value)]));
      const request = { raw, path: pathname, query: searchParams, params };
      const accepted = await route.accept(request, socket, head);
      if (accepted.elsewhere) return;
      if (this.#inFlight !== null) socket.once('close', this.#inFlight.enter('sockets', accepted.caller));
      this.#server.handleUpgrade(raw, socket, head, (opened) => {
        missed.set(opened, 0);
        openedWith.set(opened, raw.headers);
        opened.on('pong', () => missed.set(opened, 0));
        opened.on('error', () => {});
        route.open(opened, request, accepted.context);
      });
      return;
    }
    throw new PalestraError('route_not_found');
  }

  #ping(): void {
    for (const socket of this.#server.clients) {
      const count = missed.get(socket) ?? 0;
      if (count >= MISSED_PINGS) {
        socket.terminate();
        continue;
      }
      missed.set(socket, count + 1);
      socket.ping();
    }
  }
}

/** Pings that a socket has not answered yet. */
const missed = new WeakMap<WebSocket, number>();

/** Headers of the request that opened a socket; a key in its path is among them. */
const openedWith = new WeakMap<WebSocket, IncomingHttpHeaders>();

function decode(value: string | undefined): string {
  try {
    return decodeURIComponent(value ?? '');
  } catch {
    throw new PalestraError('route_not_found');
  }
}

/** A refused client that does not end its side of the connection is not waited for any longer. */
const CLOSE_MS = 5_000;

/** The HTTP answer to an upgrade that is not to be; the body is that of every error. */
function refuse(socket: Duplex, cause: unknown): void {
  const error = cause instanceof PalestraError ? cause : new PalestraError('internal_error', { cause });
  const code: ErrorCode = error.code;
  const body = JSON.stringify({ detail: error.message, message: error.message, code });
  setTimeout(() => socket.destroy(), CLOSE_MS).unref();
  const retry = error.retryAfterSeconds === undefined ? '' : `Retry-After: ${error.retryAfterSeconds}\r\n`;
  socket.end(
    `HTTP/1.1 ${error.status} ${code}\r\nContent-Type: application/json\r\n${retry}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
