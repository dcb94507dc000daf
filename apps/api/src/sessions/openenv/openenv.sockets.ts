import type { RawData, WebSocket } from 'ws';
import {
  type ClientSocket,
  frameOfResult,
  OpenEnvServer,
  OpenEnvError,
  parseRpc,
  QUEUE_LIMIT,
  readMessage,
  type Reply,
  rpcErrorText,
  RpcError,
  type ClientConnection,
  type RequestContext,
} from '@palestra/openenv/server';
import { PalestraError } from '@palestra/protocol';
import type { SocketRequest } from '../../platform/http/sockets.ts';
import type { ProtocolContext } from '../http/protocol.ts';
import { sessionOptionsOf } from './openenv.handlers.ts';

/**
 * `/ws` speaks OpenEnv's messages (docs/reference/openenv.md#socket-messages), `/mcp` bare JSON-RPC (docs/reference/openenv.md#json-rpc).
 */
type Protocol = 'ws' | 'mcp';

/**
 * Delay of a close after a refusal. A client that finds its socket closed drops the refusal unread (docs/reference/openenv.md#capacity).
 */
const GRACE_MS = 1_000;
/** A client that leaves more bytes of replies unread is disconnected. One that reads each reply before its next message leaves none. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024;
const PATTERNS: [RegExp, Protocol][] = [
  [/^\/openenv\/(?<owner>[^/]+)\/(?<env>[^/]+)\/ws$/, 'ws'],
  [/^\/openenv\/(?<owner>[^/]+)\/(?<env>[^/]+)\/mcp$/, 'mcp'],
];

/** Adds the sockets of OpenEnv clients. Keys and environments are checked before the upgrade. */
export function addOpenEnvSockets(server: OpenEnvServer, options: ProtocolContext): void {
  for (const [pattern, protocol] of PATTERNS) {
    options.sockets.add({
      pattern,
      async accept(request, socket, head) {
        const { raw, params } = request;
        // Authenticated like a request that changes state, so that a browser's cookie opens no socket from another site.
        const caller = await options.authenticate({ headers: raw.headers, method: 'POST', raw });
        if (caller === null) throw new PalestraError('unauthorized');
        const context = await server.resolve(caller, params['owner']!, params['env']!, sessionOptionsOf(raw.headers));
        const id = sessionOf(request, protocol);
        if (id !== null) {
          const path = `${request.path}?${request.query.toString()}`;
          const elsewhere = (sid: string) => options.routing.upgradeElsewhere({ raw, path, socket, head }, caller, sid);
          if (await server.routeToOwner(context, id, 'http', elsewhere)) return { isForwarded: true };
        }
        return { isForwarded: false, context: context, caller };
      },
      open(socket, request, context) {
        const openEnvSocket = new OpenEnvSocket(socket, server, protocol);
        openEnvSockets.set(socket, openEnvSocket);
        socket.on('message', onMessage);
        socket.on('close', onClose);
        openEnvSocket.open(context as RequestContext, sessionOf(request, protocol));
      },
    });
  }
}

/** An empty value counts as absent. */
const sessionOf = ({ query }: SocketRequest, protocol: Protocol): string | null =>
  protocol === 'ws' ? query.get('session_id') || null : null;

const openEnvSockets = new WeakMap<WebSocket, OpenEnvSocket>();

/** One handler for all sockets keeps idle sockets small. */
function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
  openEnvSockets.get(this)?.receive(data, isBinary);
}
function onClose(this: WebSocket): void {
  openEnvSockets.get(this)?.onClosed();
}

class OpenEnvSocket implements ClientSocket {
  #connection: ClientConnection | null = null;
  #isClosing = false;
  readonly #sendResult = (result: Reply | OpenEnvError) => this.#send(result);

  constructor(
    readonly socket: WebSocket,
    readonly server: OpenEnvServer,
    readonly protocol: Protocol,
  ) {}

  get isOpen(): boolean {
    return !this.#isClosing && this.socket.readyState === this.socket.OPEN;
  }

  open(context: RequestContext, id: string | null): void {
    try {
      this.#connection = id === null ? this.server.connect(context, 'socket') : this.server.attach(context, id, this);
      this.#connection.attached = this;
    } catch (error) {
      if (!(error instanceof OpenEnvError)) throw error;
      this.#send(error);
    }
  }

  receive(data: RawData, isBinary: boolean): void {
    const connection = this.#connection;
    if (connection === null || this.#isClosing) return;
    if (isBinary) return connection.submit(null, this.#sendResult, new OpenEnvError('SESSION_ERROR', "'text'"));
    // `binaryType` keeps its default, so a frame is one Buffer.
    const text = (data as Buffer).toString('utf8');
    try {
      const message = this.protocol === 'ws' ? readMessage(text) : ({ type: 'mcp', data: parseRpc(text, true) } as const);
      if (message.type === 'close') return this.close();
      connection.submit(message, this.#sendResult);
    } catch (error) {
      const result: Reply | OpenEnvError = error instanceof RpcError ? { kind: 'mcp', text: error.text() } : (error as OpenEnvError);
      connection.submit(null, this.#sendResult, result);
    }
    if (connection.backlog >= QUEUE_LIMIT && !this.socket.isPaused) this.socket.pause();
  }

  onClosed(): void {
    if (this.#connection !== null) this.server.detach(this.#connection, this);
    this.#connection = null;
  }

  close(): void {
    this.#isClosing = true;
    this.socket.close(1000);
  }

  #send(result: Reply | OpenEnvError): void {
    if (this.socket.readyState !== this.socket.OPEN) return;
    if (this.socket.bufferedAmount > MAX_PENDING_BYTES) return this.socket.terminate();
    this.socket.send(this.protocol === 'ws' ? frameOfResult(result) : rpcText(result));
    if (this.socket.isPaused && (this.#connection?.backlog ?? 0) < QUEUE_LIMIT / 2) this.socket.resume();
    if ('kind' in result || !result.ends || this.#isClosing) return;
    this.#isClosing = true;
    if (result.code === 'SESSION_ERROR' && this.#connection !== null) this.socket.close(1000);
    else setTimeout(() => this.socket.close(1000), GRACE_MS);
  }
}

function rpcText(result: Reply | OpenEnvError): string {
  if (result instanceof OpenEnvError) return rpcErrorText(result, result.rpcId, '');
  return 'text' in result ? result.text : '';
}
