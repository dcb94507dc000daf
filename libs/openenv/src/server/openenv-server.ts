import { isObject, type JsonValue, PalestraError, parseJson } from '@palestra/protocol';
import {
  type Caller,
  type EnvironmentDirectory,
  type HostedEnvironment,
  type Recording,
  type SecretMap,
  type SessionEngine,
  decodeSecrets,
} from '@palestra/session';
import { ReplyDeadlines } from './reply-deadlines.ts';
import type { Episode, EpisodeContext } from './episode.port.ts';
import { OpenEnvError } from '../wire/errors.ts';
import { EnvironmentInfo, type EnvironmentShape } from './environment-info.ts';
import { parseRpc, readRpc, RpcError, rpcResult, unknownSession } from '../wire/json-rpc.ts';
import { NativeEpisode } from './native-episode.ts';
import {
  rpcErrorText,
  type ClientSocket,
  ClientConnection,
  type ConnectionHooks,
  type ConnectionKind,
  type SessionStatus,
} from './client-connection.ts';
import { ConnectionRegistry } from './connection-registry.ts';
import { SLOT_TIMEOUT_MS } from './open-session.ts';
import { httpBodyOf } from './http-bodies.ts';
import { derivedSid, uuidOf } from './session-ids.ts';
import { TranslatedEpisode } from './translated-episode.ts';

/** Options of sessions from the headers of a client. `secrets`: the encoded `X-Secrets`. */
export interface SessionOptions {
  recording: Recording | null;
  secrets: string | null;
}

/** An environment as one caller sees it, with the options of the caller's sessions. */
export interface RequestContext {
  caller: Caller;
  hosted: HostedEnvironment;
  shape: EnvironmentShape;
  recording: Recording | null;
  secrets: SecretMap | null;
}

export interface OpenEnvServerOptions {
  engine: SessionEngine;
  directory: EnvironmentDirectory;
  onBackgroundError: (error: unknown, sid: string) => void;
  /** Deadline of replies. Below the 60 s that clients wait. */
  deadlineMs?: number;
  /** How long the first message waits for a slot. */
  slotTimeoutMs?: number;
}

const DEADLINE_MS = 55_000;

/**
 * Serves environments of every kind to OpenEnv clients (docs/reference/openenv.md). Independent of the web framework: sockets and routes
 * are in apps/api.
 */
export class OpenEnvServer {
  readonly engine: SessionEngine;
  readonly directory: EnvironmentDirectory;
  readonly connections: ConnectionRegistry;
  readonly #deadlines: ReplyDeadlines;
  readonly #slotTimeoutMs: number;
  readonly #hooks: ConnectionHooks;

  constructor({ engine, directory, onBackgroundError, deadlineMs = DEADLINE_MS, slotTimeoutMs = SLOT_TIMEOUT_MS }: OpenEnvServerOptions) {
    this.engine = engine;
    this.directory = directory;
    this.connections = new ConnectionRegistry(engine);
    this.#deadlines = new ReplyDeadlines(deadlineMs);
    this.#slotTimeoutMs = slotTimeoutMs;
    this.#hooks = { onEnd: (connection) => this.connections.delete(connection), onBackgroundError };
  }

  /**
   * Throws `deployment_not_found`, `secrets_invalid`, or `backend_unreachable` and similar errors if the environment's server does not
   * answer.
   */
  async resolve(caller: Caller, owner: string, name: string, options: SessionOptions | null): Promise<RequestContext> {
    const secrets = decodeSecrets(options?.secrets ?? null);
    const hosted = await this.directory.resolve(`${owner}/${name}`, caller);
    return { caller, hosted, shape: await EnvironmentInfo.of(hosted).shape(), recording: options?.recording ?? null, secrets };
  }

  /** Adds the connection of a new client. */
  connect(context: RequestContext, kind: ConnectionKind, id: string = crypto.randomUUID()): ClientConnection {
    const connection = new ClientConnection(id, kind, this.#episodeContext(context), this.#deadlines, this.#hooks);
    this.connections.add(connection);
    return connection;
  }

  #episodeContext({ hosted, ...options }: RequestContext): Omit<EpisodeContext, 'connection'> {
    return { engine: this.engine, slotTimeoutMs: this.#slotTimeoutMs, hosted, info: EnvironmentInfo.of(hosted), ...options };
  }

  /** Creates an episode for one request. */
  createEpisode(request: RequestContext): Episode {
    const connection = { nextSid: () => crypto.randomUUID(), disconnected: AbortSignal.timeout(10 * DEADLINE_MS) };
    const context: EpisodeContext = { ...this.#episodeContext(request), connection };
    return context.shape.native ? new NativeEpisode(context) : new TranslatedEpisode(context);
  }

  /**
   * Routes a request to the process that owns the session: true if `elsewhere` has taken it over. Otherwise this process has a connection
   * of the session afterwards, if the session lives, also when another process opened it or this one before a restart.
   */
  async routeToOwner(
    context: RequestContext,
    id: string,
    kind: 'http' | 'container',
    elsewhere: (sid: string) => Promise<boolean>,
  ): Promise<boolean> {
    const { caller, hosted } = context;
    if (this.#find(id, caller, hosted) !== null) return false;
    const count = await this.#sessionsOf(context, id);
    if (count === 0) return false;
    if (await elsewhere(derivedSid(id, count - 1))) return true;
    const last = await this.#sessionStatusOf(caller, derivedSid(id, count - 1));
    // A closed container can be opened again; a closed MCP session is unknown.
    if ((kind === 'http' && last === 'ended') || this.#find(id, caller, hosted) !== null) return false;
    this.connect(context, kind, id).resume(count - 1, last);
    return false;
  }

  /** Counts the sessions of a connection on all processes. Their SIDs are derived from its id. */
  async #sessionsOf({ caller, hosted }: RequestContext, id: string): Promise<number> {
    const exists = async (number: number) => {
      const environment = await this.engine.environmentOf(caller, derivedSid(id, number)).catch(() => null);
      return environment?.environmentId === hosted.environmentId;
    };
    if (!(await exists(0))) return 0;
    let known = 0;
    let unknown = 1;
    while (await exists(unknown)) [known, unknown] = [unknown, unknown * 2];
    while (unknown - known > 1) {
      const middle = (known + unknown) >> 1;
      if (await exists(middle)) known = middle;
      else unknown = middle;
    }
    return known + 1;
  }

  async #sessionStatusOf(caller: Caller, sid: string): Promise<SessionStatus> {
    try {
      await this.engine.ping(caller, sid);
      return 'open';
    } catch (error) {
      return error instanceof PalestraError && error.code === 'session_not_found' ? 'reserved' : 'ended';
    }
  }

  /**
   * Attaches a socket to an HTTP MCP session. Throws `SESSION_ERROR` with the texts of OpenEnv's server
   * (docs/reference/openenv.md#attached-sessions). Refuses ids of plain sockets.
   */
  attach({ caller, hosted }: RequestContext, id: string, socket: ClientSocket): ClientConnection {
    const connection = this.#find(id, caller, hosted);
    if (connection === null || connection.kind === 'container') throw new OpenEnvError('SESSION_ERROR', `Unknown session_id: ${id}`);
    if (connection.isStarting) throw new OpenEnvError('SESSION_ERROR', `Session ${id} is still initializing`);
    if (connection.attached !== null) throw new OpenEnvError('SESSION_ERROR', `Session ${id} already has an attached WebSocket`);
    connection.attached = socket;
    connection.lastUsedAt = Date.now();
    return connection;
  }

  /** A socket whose client sent `close` is detached, also while the connection still closes. */
  #find(id: string, caller: Caller, hosted: HostedEnvironment): ClientConnection | null {
    const connection = this.connections.find(id, caller, hosted);
    if (connection?.attached?.isOpen === false) this.detach(connection, connection.attached);
    return connection?.ended === false ? connection : null;
  }

  /** Called when the socket has closed. */
  detach(connection: ClientConnection, socket: ClientSocket): void {
    if (connection.attached !== socket) return;
    connection.attached = null;
    connection.lastUsedAt = Date.now();
    if (connection.kind === 'socket' || connection.endsOnDetach) connection.end();
  }

  /** Answers one JSON-RPC request over HTTP. `disconnected` aborts when the client leaves before the response. */
  async handleRpc(context: RequestContext, body: string, disconnected: AbortSignal): Promise<string> {
    let id = 'null';
    try {
      const data = parseRpc(body, false);
      const request = readRpc(data);
      ({ id } = request);
      switch (request.method) {
        case 'openenv/session/create':
          return rpcResult(id, await this.#createSession(context, disconnected));
        case 'openenv/session/close':
          return rpcResult(id, await this.#closeSession(context, request.params['session_id']));
        case 'tools/list':
        case 'tools/call':
          break;
        default:
          throw new RpcError(-32601, `Method not found: ${request.method}`);
      }
      const { session_id: session } = request.params;
      if (session === undefined || session === null) return rpcResult(id, await this.#once(context, (episode) => episode.rpc(request)));
      const result = await this.#connectionOf(context, session).send({ type: 'mcp', data });
      if (result instanceof OpenEnvError) throw result;
      return httpBodyOf(result);
    } catch (error) {
      return rpcErrorText(error, id, context.shape.className);
    }
  }

  async #once<T>(context: RequestContext, play: (episode: Episode) => Promise<T>): Promise<T> {
    const episode = this.createEpisode(context);
    try {
      return await play(episode);
    } finally {
      await episode.end();
    }
  }

  #connectionOf({ caller, hosted }: RequestContext, id: JsonValue): ClientConnection {
    const connection = typeof id === 'string' ? this.#find(id, caller, hosted) : null;
    if (connection === null || connection.kind === 'container') throw unknownSession(id);
    if (connection.isStarting) throw new RpcError(-32600, `Session ${String(id)} is still initializing; retry shortly`);
    return connection;
  }

  /** Ends the session if the client leaves before it gets the id, because it could not close the session. */
  async #createSession(context: RequestContext, disconnected: AbortSignal): Promise<string> {
    const connection = this.connect(context, 'http');
    connection.isStarting = true;
    const endConnection = () => connection.end();
    disconnected.addEventListener('abort', endConnection, { once: true });
    try {
      await connection.episode.reserve();
      // The slot is on another process: later requests are routed there.
      if (!(await this.engine.locate(context.caller, connection.id)).here) this.connections.delete(connection);
    } catch (error) {
      connection.end();
      throw error;
    }
    connection.isStarting = false;
    return `{"session_id":"${connection.id}"}`;
  }

  async #closeSession(context: RequestContext, id: JsonValue): Promise<string> {
    if (typeof id !== 'string' || id === '') throw new RpcError(-32602, "Invalid params - 'session_id' is required");
    const connection = this.#connectionOf(context, id);
    if (connection.kind === 'socket') throw new RpcError(-32600, 'Cannot close active WebSocket-managed session via MCP method');
    if (connection.attached !== null) {
      connection.endsOnDetach = true;
      return `{"session_id":${JSON.stringify(id)},"closed":false,"closing":true}`;
    }
    connection.end();
    await connection.sessionClosed;
    return `{"session_id":${JSON.stringify(id)},"closed":true}`;
  }

  /** The id of the connection of a virtual container, on every process. */
  containerId({ caller, hosted }: RequestContext, name: string): string {
    return uuidOf(JSON.stringify(['container', caller.orgId, caller.keyId, hosted.environmentId, name]));
  }

  /** The connection of a virtual container, or null. `create`: creates it if it does not exist. */
  container(context: RequestContext, name: string, create: boolean): ClientConnection | null {
    const id = this.containerId(context, name);
    const connection = this.#find(id, context.caller, context.hosted);
    return connection ?? (create ? this.connect(context, 'container', id) : null);
  }
}

/** The session id in a JSON-RPC body, or null. */
export function sessionIdOf(body: string): string | null {
  try {
    const request = parseJson(body);
    const params = isObject(request) ? request['params'] : null;
    const id = isObject(params) ? params['session_id'] : null;
    return typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}
