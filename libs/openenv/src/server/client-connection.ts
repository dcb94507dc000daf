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

/** `socket` lives and ends with its socket; `http` and `container` last until they are closed, or have been silent for too long. */
export type ConnectionKind = 'socket' | 'http' | 'container';
/** Of a session that another connection opened. */
export type SessionStatus = 'open' | 'reserved' | 'ended';
export type ReplyHandler = (result: Reply | OpenEnvError) => void;

export interface ConnectionHooks {
  onEnd: (connection: ClientConnection) => void;
  onBackgroundError: (error: unknown, sid: string) => void;
}

/** The socket at a connection. */
export interface ClientSocket {
  /** False from its client's goodbye on, which may be a moment before it is disconnected. */
  readonly isOpen: boolean;
  /** With code 1000. */
  close(): void;
}

/** What may wait behind the running message; whoever sends more is not read for a while. */
export const QUEUE_LIMIT = 32;

/**
 * One client's place: a socket of its own, an HTTP MCP session with or without a socket, or a virtual container. Whatever way its messages
 * come they run one after another, and each gets one reply, in order, within the deadline.
 */
export class ClientConnection {
  readonly episode: Episode;
  #disconnected: AbortController | null = null;
  readonly #queue: QueuedMessage[] = [];
  #running: QueuedMessage | null = null;
  #sessions = 0;
  /** Its session has ended by itself. */
  #sessionEnded = false;
  attached: ClientSocket | null = null;
  /** Waits for its first slot. */
  starting = false;
  /** To end when its socket goes. */
  closing = false;
  ended = false;
  /** Resolves, once it has ended, when no process knows its session any more. */
  sessionClosed: Promise<void> = Promise.resolve();
  /** Of a virtual container: the last answer, with the reward of an action that does nothing. */
  lastObservation: string | null = null;
  lastUsedAt = Date.now();
  pingedAt = Date.now();

  constructor(
    /** What clients call it: the SID of its first session. */
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

  /** Aborts when the client has left. */
  get disconnected(): AbortSignal {
    this.#disconnected ??= new AbortController();
    if (this.ended) this.#disconnected.abort(deleted());
    return this.#disconnected.signal;
  }

  /** Goes on after the session of that number. */
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

  /** Its session could not be pinged. */
  lost(error: unknown): void {
    if (isGone(error)) this.end();
  }

  /** `message` null: only `result` is to be answered, in its turn. */
  submit(message: OpenEnvMessage | null, answer: ReplyHandler, result: Reply | OpenEnvError | null = null): void {
    const job = new QueuedMessage(this, message, result, answer);
    if (this.ended) return job.settle(deleted());
    this.lastUsedAt = Date.now();
    this.deadlines.add(job);
    if (this.#running === null) this.#start(job);
    else this.#queue.push(job);
  }

  ask(message: OpenEnvMessage): Promise<Reply | OpenEnvError> {
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
    const said = toOpenEnvError(error, this.context.shape.className);
    if (said.message === 'Internal Server Error') this.hooks.onBackgroundError(error, this.episode.sid ?? this.id);
    return said;
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
      this.#sessionEnded = isGone(error);
      const said = error instanceof RpcError || this.#sessionEnded ? null : toOpenEnvError(error, this.context.shape.className);
      // As a socket that never got a session: it is told why, and closed.
      if (said?.refuses) throw said.to(id);
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

  /** A message took too long: it has been answered, and if it only waited it never runs. */
  expired(job: QueuedMessage): void {
    const at = this.#queue.indexOf(job);
    if (at >= 0) this.#queue.splice(at, 1);
    const seconds = this.deadlines.limitMs / 1000;
    const why = at >= 0 ? 'The message before it still runs; this one was not run.' : 'It goes on; its result is not sent.';
    job.settle(new OpenEnvError('EXECUTION_ERROR', `No result within ${seconds} s. ${why}`));
  }

  /** Ends its session, gives back its slot, and closes its socket. */
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

  /** Again after what was running: it may have opened a session meanwhile. */
  #endEpisode(): void {
    this.sessionClosed = this.episode.end().catch((error: unknown) => this.hooks.onBackgroundError(error, this.id));
  }
}

const deleted = () => new OpenEnvError('SESSION_ERROR', 'Session deleted');

/** Ended by itself, or by somebody else. */
const isGone = (error: unknown): boolean => error instanceof PalestraError && (error.status === 410 || error.code === 'session_not_found');

class QueuedMessage implements PendingReply {
  expiresAt = 0;
  #answered = false;

  constructor(
    readonly connection: ClientConnection,
    readonly message: OpenEnvMessage | null,
    readonly result: Reply | OpenEnvError | null,
    readonly answer: ReplyHandler,
  ) {}

  settle(result: Reply | OpenEnvError): void {
    if (this.#answered) return;
    this.#answered = true;
    this.connection.deadlines.delete(this);
    this.answer(result);
  }

  expire(): void {
    this.connection.expired(this);
  }
}

/** The JSON-RPC answer to a request that failed. */
export function rpcErrorText(error: unknown, id: string, factory: string): string {
  if (error instanceof RpcError) return error.text(id);
  const { refuses, message, extra } = toOpenEnvError(error, factory);
  return new RpcError(refuses ? -32000 : -32603, message, refuses ? extra : null).text(id);
}
