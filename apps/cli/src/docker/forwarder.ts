import { once } from 'node:events';
import http, { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** Header of the request that ends a container; its value is the id of the container. */
export const STOP_HEADER = 'x-palestra-container';
/** Deadline of the request that ends the session. Without it the session expires later. */
const END_SESSION_MS = 1_200;
const IDLE_CHECK_MS = 5_000;
/** Why a trainer closes an episode that is not over: SkyRL's integration has reached its last turn. */
const CLOSED_STOP = 'max_turns';
/** Routes of the first client generation that use the session of this container (docs/reference/openenv.md#stateful-http). */
const STATEFUL = new Set(['/health', '/reset', '/step', '/state']);
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'proxy-connection',
  'te',
  'trailer',
  'expect',
  'host',
]);

export interface ForwarderOptions {
  id: string;
  /** 0 for any free port. */
  port: number;
  /** URL of the environment without a trailing slash: `https://host/openenv/owner/name`. */
  baseUrl: string;
  apiKey: string;
  /** Name of the run to which each episode is recorded as a rollout. */
  run: string;
  /** Ends the session and the forwarder after this time without a request. */
  idleTimeoutMs: number;
}

/** A container: forwards a port of localhost to one session of an environment, with the user's API key. */
export class ContainerForwarder {
  readonly #options: ForwarderOptions;
  readonly #server: Server;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;
  #lastSeenAt = Date.now();
  #active = 0;
  #idleTimer: NodeJS.Timeout | null = null;
  #ending: Promise<void> | null = null;
  #markEnded = () => {};
  /** Resolves when the container has ended. */
  readonly ended = new Promise<void>((resolve) => (this.#markEnded = resolve));

  private constructor(options: ForwarderOptions) {
    this.#options = options;
    const scheme = options.baseUrl.startsWith('https:') ? https : http;
    this.#agent = new scheme.Agent({ keepAlive: true });
    this.#request = scheme.request;
    this.#server = createServer((request, response) => this.#onRequest(request, response));
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#onUpgrade(request, socket, head));
    this.#server.keepAliveTimeout = 75_000;
  }

  /** Listens on 127.0.0.1. Rejects with the system's error, such as `EADDRINUSE`. */
  static async start(options: ForwarderOptions): Promise<ContainerForwarder> {
    const forwarder = new ContainerForwarder(options);
    forwarder.#server.listen(options.port, '127.0.0.1');
    await once(forwarder.#server, 'listening');
    forwarder.#idleTimer = setInterval(() => forwarder.#endIfIdle(), Math.min(IDLE_CHECK_MS, options.idleTimeoutMs));
    return forwarder;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends the session, then the server. */
  end(): Promise<void> {
    this.#ending ??= (async () => {
      if (this.#idleTimer) clearInterval(this.#idleTimer);
      this.#server.close();
      await this.#endSession();
      this.#server.closeAllConnections();
      this.#agent.destroy();
      this.#markEnded();
    })();
    return this.#ending;
  }

  #endIfIdle(): void {
    if (this.#active === 0 && Date.now() - this.#lastSeenAt > this.#options.idleTimeoutMs) void this.end();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#touch(response);
    if (request.method === 'DELETE' && request.headers[STOP_HEADER] === this.#options.id) {
      void this.end();
      // Responds while the session is being ended; the result does not matter to the client.
      response.writeHead(200, { connection: 'close' }).end();
      return;
    }
    const upstream = this.#request(this.#target(request.url!), {
      agent: this.#agent,
      method: request.method!,
      headers: this.#headersOf(request),
    });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode!, withoutHopByHop(answer.headers));
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    upstream.on('error', (error) => {
      if (response.headersSent) response.destroy();
      else sendJson(response, 502, { detail: `The Palestra server cannot be reached: ${error.message}` });
    });
    request.pipe(upstream);
    response.on('close', () => {
      if (!response.writableFinished) upstream.destroy();
    });
  }

  /** Forwards the WebSocket of clients of later generations. Each socket has a separate session. */
  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#touch(socket);
    const headers = { ...this.#headersOf(request), connection: 'Upgrade', upgrade: request.headers.upgrade! };
    const upstream = this.#request(this.#target(request.url!), { headers });
    const destroySocket = () => socket.destroy();
    socket.on('error', () => upstream.destroy());
    upstream.on('error', destroySocket);
    upstream.on('response', (answer) => {
      socket.end(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      answer.resume();
    });
    upstream.on('upgrade', (answer, other, otherHead) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
      socket.write(otherHead);
      other.write(head);
      other.on('error', destroySocket).on('close', destroySocket);
      socket.on('close', () => other.destroy());
      socket.pipe(other).pipe(socket);
    });
    upstream.end();
  }

  /** Counts the container as in use until `channel` closes. */
  #touch(channel: ServerResponse | Duplex): void {
    this.#active += 1;
    channel.once('close', () => {
      this.#active -= 1;
      this.#lastSeenAt = Date.now();
    });
  }

  #target(url: string): string {
    const { id, baseUrl } = this.#options;
    const path = url.split('?', 1)[0]!;
    return STATEFUL.has(path) ? `${baseUrl}/container/${id}${url}` : `${baseUrl}${url}`;
  }

  #headersOf(request: IncomingMessage): http.OutgoingHttpHeaders {
    const { apiKey, run } = this.#options;
    const headers = withoutHopByHop(request.headers);
    // Cookies of the trainer's machine are not for the Palestra server.
    delete headers['cookie'];
    headers['x-palestra-run'] ??= encodeURIComponent(run);
    headers['x-palestra-stop'] ??= CLOSED_STOP;
    return apiKey ? { ...headers, authorization: `Bearer ${apiKey}` } : headers;
  }

  async #endSession(): Promise<void> {
    const { id, baseUrl, apiKey } = this.#options;
    const headers = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
    const request = this.#request(`${baseUrl}/container/${id}`, { method: 'DELETE', headers, signal: AbortSignal.timeout(END_SESSION_MS) });
    request.end();
    // The response does not matter: the session expires in any case.
    await once(request, 'response').then(
      ([answer]: IncomingMessage[]) => answer!.resume(),
      () => {},
    );
    request.destroy();
  }
}

function withoutHopByHop(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
