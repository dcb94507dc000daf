import { type JsonValue, PalestraError } from '@palestra/protocol';
import type { OpenEnvMessage } from '../wire/native.ts';
import type { ReplyDeadlines, PendingReply } from './reply-deadlines.ts';
import type { Episode, EpisodeContext } from './episode.port.ts';
import { OpenEnvError, toOpenEnvError } from '../wire/errors.ts';
import { readRpc, RpcError, rpcResult, type RpcRequest, unknownSession } from '../wire/json-rpc.ts';
import { NativeEpisode } from './native-episode.ts';
import type { Reply } from '../wire/client-replies.ts';
import { derivedSid } from './session-ids.ts';
import { TranslatedEpisode } from './translated-episode.ts';

/** A `socket` connection ends with its socket. `http` and `container` connections end when they are closed or idle for too long. */
export type ConnectionKind = 'socket' | 'http' | 'container';
/** State of a session that this process did not open. */
export type SessionStatus = 'open' | 'reserved' | 'ended';
export type ReplyHandler = (result: Reply | OpenEnvError) => void;

export interface ConnectionHooks {
  onEnd: (connection: ClientConnection) => void;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** The client's end of a socket. */
export interface ClientSocket {
  /** False after the client's `close` message, also while the socket still closes. */
  readonly isOpen: boolean;
  /** Closes with code 1000. */
  close(): void;
}

/** Messages that may wait behind the running one. Beyond it the socket is not read. */
export const QUEUE_LIMIT = 32;

/**
 * One client: a socket, an HTTP MCP session with or without a socket, or a virtual container. Its messages run one after another. Each gets
 * one reply, in order, within the deadline.
 */
export class ClientConnection {
  readonly episode: Episode;
  #disconnected: AbortController | null = null;
  readonly #queue: QueuedMessage[] = [];
  #running: QueuedMessage | null = null;
  #sessions = 0;
  /** The engine reported that the session has ended. */
  #sessionEnded = false;
  attached: ClientSocket | null = null;
  isStarting = false;
  /** Ends when its socket closes. */
  endsOnDetach = false;
  ended = false;
  /** Resolves after `end` when the engine has deleted the session. */
  sessionClosed: Promise<void> = Promise.resolve();
  /** Last observation of a virtual container with reward null: the reply to an invalid action. */
  lastObservation: string | null = null;
  lastUsedAt = Date.now();
  pingedAt = Date.now();

  constructor(
    /** The id that the client knows: the SID of the first session. */
    readonly id: string,
    readonly kind: ConnectionKind,
    readonly context: Omit<EpisodeContext, 'connection'>,
    readonly deadlines: ReplyDeadlines,
    readonly hooks: ConnectionHooks,
  ) {
    const full: EpisodeContext = { ...context, connection: this };
    this.episode = context.shape.native ? new NativeEpisode(full) : new TranslatedEpisode(full);
  }

  nextSid(): string {
    return derivedSid(this.id, this.#sessions++);
  }

  get disconnected(): AbortSignal {
    this.#disconnected ??= new AbortController();
    if (this.ended) this.#disconnected.abort(deleted());
    return this.#disconnected.signal;
  }

  /** Continues with session `number`, which this process did not open. */
  resume(number: number, status: SessionStatus): void {
    this.#sessions = number + 1;
    const isStepped = this.kind === 'container' || !this.context.shape.toolActions;
    if (status !== 'ended') this.episode.resume(derivedSid(this.id, number), status === 'open', isStepped);
  }

  get backlog(): number {
    return this.#queue.length;
  }

  get isBusy(): boolean {
    return this.#running !== null;
  }

  onPingFailed(error: unknown): void {
    if (hasEnded(error)) this.end();
  }

  /** `message` null: sends `result` in its turn. */
  submit(message: OpenEnvMessage | null, onReply: ReplyHandler, result: Reply | OpenEnvError | null = null): void {
    const queued = new QueuedMessage(this, message, result, onReply);
    if (this.ended) return queued.settle(deleted());
    this.lastUsedAt = Date.now();
    this.deadlines.add(queued);
    if (this.#running === null) this.#start(queued);
    else this.#queue.push(queued);
  }

  send(message: OpenEnvMessage): Promise<Reply | OpenEnvError> {
    return new Promise((resolve) => this.submit(message, resolve));
  }

  #start(job: QueuedMessage): void {
    this.#running = job;
    if (job.message === null) return this.#finish(job, job.result!);
    let reply: Promise<Reply> | Reply;
    try {
      reply = this.#run(job.message);
    } catch (error) {
      return this.#finish(job, toOpenEnvError(error, this.context.shape.className));
    }
    if (!(reply instanceof Promise)) return this.#finish(job, reply);
    reply.then(
      (done) => this.#finish(job, done),
      (error: unknown) => this.#finish(job, this.#toError(error)),
    );
  }

  #toError(error: unknown): OpenEnvError {
    const reported = toOpenEnvError(error, this.context.shape.className);
    if (reported.message === 'Internal Server Error') this.hooks.onBackgroundError(error, this.episode.sid ?? this.id);
    return reported;
  }

  #finish(job: QueuedMessage, result: Reply | OpenEnvError): void {
    this.#running = null;
    job.settle(result);
    if (this.ended) return this.#endEpisode();
    if (this.#sessionEnded || (result instanceof OpenEnvError && result.code === 'SESSION_ERROR')) return this.end();
    const next = this.#queue.shift();
    if (next !== undefined) this.#start(next);
  }

  #run(message: OpenEnvMessage): Promise<Reply> | Reply {
    switch (message.type) {
      case 'step':
        return this.episode.step(message.data);
      case 'reset':
        return this.episode.reset(message.data);
      case 'state':
        return this.episode.state();
      case 'mcp':
        return this.#rpc(message.data);
    }
  }

  async #rpc(data: JsonValue): Promise<Reply> {
    let id = 'null';
    try {
      const request = readRpc(data);
      ({ id } = request);
      return { kind: 'mcp', text: rpcResult(id, await this.#rpcResult(request)) };
    } catch (error) {
      this.#sessionEnded = hasEnded(error);
      const reported = error instanceof RpcError || this.#sessionEnded ? null : toOpenEnvError(error, this.context.shape.className);
      // No session could be opened: the client gets the reason and its socket closes.
      if (reported?.refuses) throw reported.forRpc(id);
      return { kind: 'mcp', text: rpcErrorText(this.#sessionEnded ? unknownSession(this.id) : error, id, this.context.shape.className) };
    }
  }

  #rpcResult(request: RpcRequest): Promise<string> | string {
    switch (request.method) {
      case 'tools/list':
      case 'tools/call':
        return this.episode.rpc(request);
      case 'openenv/session/create':
        return `{"session_id":${JSON.stringify(this.id)}}`;
      case 'openenv/session/close': {
        const { session_id: id } = request.params;
        if (typeof id !== 'string') throw new RpcError(-32602, "Invalid params - 'session_id' is required");
        if (id !== this.id) throw new RpcError(-32602, `Unknown session_id: ${id}`);
        throw new RpcError(-32600, 'Cannot close active WebSocket-managed session via MCP method');
      }
      default:
        throw new RpcError(-32601, `Method not found: ${request.method}`);
    }
  }

  /** Replies to a message that exceeded its deadline. If it still waits, it never runs. */
  onExpired(queued: QueuedMessage): void {
    const at = this.#queue.indexOf(queued);
    if (at >= 0) this.#queue.splice(at, 1);
    const seconds = this.deadlines.limitMs / 1000;
    const why = at >= 0 ? 'The message before it still runs; this one was not run.' : 'It goes on; its result is not sent.';
    queued.settle(new OpenEnvError('EXECUTION_ERROR', `No result within ${seconds} s. ${why}`));
  }

  /** Ends the session, frees its slot and closes the socket. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.hooks.onEnd(this);
    this.#disconnected?.abort(deleted());
    for (const job of this.#queue.splice(0)) job.settle(deleted());
    this.attached?.close();
    this.attached = null;
    this.#endEpisode();
  }

  /** Also called after the running message, which may have opened a session meanwhile. */
  #endEpisode(): void {
    this.sessionClosed = this.episode.end().catch((error: unknown) => this.hooks.onBackgroundError(error, this.id));
  }
}

const deleted = () => new OpenEnvError('SESSION_ERROR', 'Session deleted');

const hasEnded = (error: unknown): boolean =>
  error instanceof PalestraError && (error.status === 410 || error.code === 'session_not_found');

class QueuedMessage implements PendingReply {
  expiresAt = 0;
  #isSettled = false;

  constructor(
    readonly connection: ClientConnection,
    readonly message: OpenEnvMessage | null,
    readonly result: Reply | OpenEnvError | null,
    readonly onReply: ReplyHandler,
  ) {}

  settle(result: Reply | OpenEnvError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.connection.deadlines.delete(this);
    this.onReply(result);
  }

  expire(): void {
    this.connection.onExpired(this);
  }
}

export function rpcErrorText(error: unknown, id: string, factory: string): string {
  if (error instanceof RpcError) return error.text(id);
  const { refuses, message, extra } = toOpenEnvError(error, factory);
  return new RpcError(refuses ? -32000 : -32603, message, refuses ? extra : null).text(id);
}
