import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, PalestraError } from '@palestra/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Holder, InFlight } from '../limits.ts';
import { takePathKey } from './credentials.ts';

/** The largest accepted frame, bytes: the maximum of OpenEnv's clients (docs/reference/openenv.md#transport). */
export const MAX_FRAME = 100 * 1024 * 1024;
const PING_MS = 20_000;
/** A peer that misses this many pings in a row is disconnected, because half-open sockets must not hold slots. */
const MISSED_PINGS = 3;

export interface SocketRequest {
  raw: IncomingMessage;
  /** Without the key prefix and the query. */
  path: string;
  query: URLSearchParams;
  /** Named groups of the route's pattern, decoded. */
  params: Record<string, string>;
}

export interface SocketRoute {
  /** Matches the whole path. Its named groups are the parameters. */
  pattern: RegExp;
  /**
   * Called before the upgrade. A rejection becomes the HTTP response (401 for a bad key). `isForwarded`: it has forwarded the raw socket.
   * `open` gets the `context`; the socket counts for `caller`.
   */
  accept(
    request: SocketRequest,
    socket: Duplex,
    head: Buffer,
  ): Promise<{ isForwarded: true } | { isForwarded: false; context: unknown; caller: Holder }>;
  open(socket: WebSocket, request: SocketRequest, context: unknown): void;
}

/** WebSockets of the HTTP server: routes upgrades, sends pings, and closes all sockets at shutdown. */
export class Sockets {
  readonly #routes: SocketRoute[] = [];
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME, perMessageDeflate: false, clientTracking: true });
  #pinging: NodeJS.Timeout | null = null;
  #inFlight: InFlight | null = null;

  /** `pingMs`: interval of pings. */
  constructor(readonly pingMs = PING_MS) {}

  add(route: SocketRoute): void {
    this.#routes.push(route);
  }

  /** `inFlight`: limits the sockets of each caller; null = no limit. */
  listen(server: Server, inFlight: InFlight | null): void {
    this.#inFlight = inFlight;
    server.on('upgrade', (raw: IncomingMessage, socket: Duplex, head: Buffer) => {
      // A client may disconnect during the upgrade.
      socket.on('error', () => {});
      this.#upgrade(raw, socket, head).catch((error: unknown) => refuse(socket, error));
    });
    this.#pinging = setInterval(() => this.#ping(), this.pingMs);
    this.#pinging.unref();
  }

  /** Number of open sockets. */
  get size(): number {
    return this.#server.clients.size;
  }

  /** Open sockets with the headers of their upgrade request, and the organisation for which they were opened. */
  opened(): Map<WebSocket, Upgrade> {
    return new Map([...this.#server.clients].flatMap((socket) => (upgrades.has(socket) ? [[socket, upgrades.get(socket)!]] : [])));
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
      if (accepted.isForwarded) return;
      if (this.#inFlight !== null) socket.once('close', this.#inFlight.enter('sockets', accepted.caller));
      this.#server.handleUpgrade(raw, socket, head, (opened) => {
        missed.set(opened, 0);
        upgrades.set(opened, { headers: raw.headers, orgId: accepted.caller.orgId });
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

/** Unanswered pings of a socket. */
const missed = new WeakMap<WebSocket, number>();

interface Upgrade {
  /** Including a key from its path. */
  headers: IncomingHttpHeaders;
  orgId: string;
}

const upgrades = new WeakMap<WebSocket, Upgrade>();

function decode(value: string | undefined): string {
  try {
    return decodeURIComponent(value ?? '');
  } catch {
    throw new PalestraError('route_not_found');
  }
}

/** After this time a refused connection is closed, even if the client keeps its side open. */
const CLOSE_MS = 5_000;

/** Sends the HTTP response to a refused upgrade, with the usual error body. */
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
