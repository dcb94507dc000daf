import type { QueryClient } from '@tanstack/react-query';
import type { SessionServerFrame } from '@palestra/protocol';
import { ApiError } from './http.ts';
import { callTool, isLost, newSid, pingSession, type PlayCall, type Played, retryWait } from './playground.ts';
import { followSession, refreshSession, showCall, showSession } from './sessions.ts';
import { whileVisible } from './live/stream.ts';

/**
 * `live`: calls and events use one socket. `connecting`: the socket is being opened, and calls wait. `http`: no socket can be opened, so calls are
 * posted and events are streamed. `over`: the session has ended.
 */
export type LinkState = 'connecting' | 'live' | 'http' | 'over';

const OPEN_DEADLINE_MS = 5_000;
/** A socket that lived this long shows that the network allows sockets. */
const STEADY_MS = 5_000;
/** A server that sends nothing for this long after a ping is unreachable. */
const PONG_DEADLINE_MS = 10_000;
const RECONNECT_MS = [250, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** After this many failed or short-lived sockets in a row, the page uses HTTP and retries the socket later. */
const ATTEMPTS_BEFORE_HTTP = 2;

interface PendingCall {
  id: string;
  call: PlayCall;
  signal: AbortSignal;
  onTaskId: (taskId: string) => void;
  resolve: (played: Played) => void;
  reject: (error: unknown) => void;
  taskId: string | null;
  /** The call was accepted more than once, so its stored result is read. */
  replayed: boolean;
  /** Refusals in a row that can be retried. */
  refusals: number;
  /** The call was posted over HTTP and gets its answer there. */
  posted: boolean;
}

/**
 * Plays and follows a session (docs/sessions.md). The page chooses an id for every call, so that it can send the call again over the next socket
 * or over HTTP, and the call never runs twice. Events resume after the last one that was read.
 */
export class SessionLink {
  #state: LinkState = 'connecting';
  readonly #listeners = new Set<() => void>();
  readonly #pending = new Map<string, PendingCall>();
  #socket: WebSocket | null = null;
  /** Id of the last applied event. */
  #lastEvent: string | null = null;
  /** Failed or short-lived sockets in a row. */
  #failures = 0;
  #openedAt: number | null = null;
  #reconnect: ReturnType<typeof setTimeout> | undefined;
  #probe: ReturnType<typeof setTimeout> | undefined;
  #stopFollowing: (() => void) | null = null;
  /** Applies events in order, after the reads that began before them. */
  #applied: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly client: QueryClient,
    readonly sid: string,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly state = (): LinkState => this.#state;

  /** Opens the link. Returns a function that closes it. */
  start(): () => void {
    this.#failures = 0;
    this.#set('connecting');
    this.#connect();
    return () => {
      const socket = this.#socket;
      this.#drop();
      clearTimeout(this.#reconnect);
      this.#follow(false);
      if (socket?.readyState !== WebSocket.CONNECTING) return socket?.close(1000);
      // Browsers log an error if a socket is closed before it is open.
      socket.addEventListener('open', () => socket.close(1000));
    };
  }

  /** Runs a tool once, also if the connection breaks. Resolves when the call has ended; its event has the outcome. */
  call(call: PlayCall, onTaskId: (taskId: string) => void, signal: AbortSignal): Promise<Played> {
    const id = newSid();
    return new Promise<Played>((resolve, reject) => {
      const pending = { id, call, signal, onTaskId, resolve, reject, taskId: null, replayed: false, refusals: 0, posted: false };
      this.#pending.set(id, pending);
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.#send(pending);
    }).finally(() => this.#pending.delete(id));
  }

  /** Keeps the session alive and checks the connection. A failed ping over HTTP is ignored. */
  ping(): void {
    const socket = this.#socket;
    if (this.#state !== 'live' || socket === null) return void pingSession(this.sid).catch(() => {});
    socket.send('{"type":"ping"}');
    clearTimeout(this.#probe);
    this.#probe = setTimeout(() => {
      this.#lost(socket);
      socket.close();
    }, PONG_DEADLINE_MS);
  }

  #connect(): void {
    const url = new URL(`/v1/sessions/${encodeURIComponent(this.sid)}/socket`, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    if (this.#lastEvent !== null) url.searchParams.set('after', this.#lastEvent);
    const socket = new WebSocket(url);
    this.#socket = socket;
    const deadline = setTimeout(() => this.#lost(socket), OPEN_DEADLINE_MS);
    const isCurrent = () => this.#socket === socket;
    socket.addEventListener('open', () => {
      clearTimeout(deadline);
      if (isCurrent()) this.#opened();
      else socket.close(1000);
    });
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      if (!isCurrent()) return;
      clearTimeout(this.#probe);
      this.#receive(JSON.parse(data) as SessionServerFrame);
    });
    socket.addEventListener('close', () => {
      clearTimeout(deadline);
      this.#lost(socket);
    });
  }

  #opened(): void {
    this.#openedAt = Date.now();
    this.#follow(false);
    // Changes between the first read and the first socket.
    if (this.#lastEvent === null) this.#applied = refreshSession(this.client, this.sid).catch(() => {});
    this.#set('live');
    for (const pending of this.#pending.values()) this.#send(pending);
  }

  #drop(): void {
    this.#socket = null;
    clearTimeout(this.#probe);
  }

  #lost(socket: WebSocket): void {
    if (this.#socket !== socket) return;
    this.#drop();
    if (this.#state === 'over') return;
    if (this.#openedAt !== null && Date.now() - this.#openedAt >= STEADY_MS) this.#failures = 0;
    this.#openedAt = null;
    this.#reconnect = setTimeout(() => this.#connect(), RECONNECT_MS[Math.min(this.#failures, RECONNECT_MS.length - 1)]);
    this.#failures += 1;
    if (this.#failures < ATTEMPTS_BEFORE_HTTP) return this.#set('connecting');
    this.#follow(true);
    this.#set('http');
    for (const pending of this.#pending.values()) this.#send(pending);
  }

  /** Follows the event stream while there is no socket. */
  #follow(on: boolean): void {
    if (on) this.#stopFollowing ??= whileVisible(() => followSession(this.client, this.sid));
    else {
      this.#stopFollowing?.();
      this.#stopFollowing = null;
    }
  }

  /** Sends a call over the socket or HTTP; while connecting, the call waits. */
  #send(pending: PendingCall): void {
    const { id, call, signal, onTaskId, posted } = pending;
    if (posted || !this.#pending.has(id)) return;
    if (this.#state === 'live') {
      // As text, so that the numbers of its input keep their digits.
      this.#socket?.send(`${JSON.stringify({ type: 'call', id, tool: call.tool }).slice(0, -1)},"input":${call.input}}`);
    } else if (this.#state !== 'connecting') {
      pending.posted = true;
      callTool(this.sid, call, { id, taskId: pending.taskId, signal, onTaskId }).then(pending.resolve, pending.reject);
    }
  }

  #receive(message: SessionServerFrame): void {
    switch (message.type) {
      case 'session':
        return this.#apply(message.event, () => showSession(this.client, message.session));
      case 'call':
        return this.#apply(message.event, () => showCall(this.client, this.sid, message.call));
      case 'end':
        this.#apply(message.event, () => showSession(this.client, message.session));
        return this.#set('over');
      case 'accepted':
        return this.#accepted(message.id, message.task_id);
      case 'result':
        return this.#ended(message.id, message.task_id);
      case 'error':
        return message.task_id === undefined ? this.#refused(message) : this.#ended(message.id ?? '', message.task_id);
      case 'pong':
    }
  }

  #apply(event: string, show: () => void): void {
    this.#applied = this.#applied.then(() => {
      this.#lastEvent = event;
      show();
    });
  }

  #accepted(id: string, taskId: string): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    pending.replayed ||= pending.taskId !== null;
    pending.taskId = taskId;
    pending.onTaskId(taskId);
  }

  #ended(id: string, taskId: string): void {
    const pending = this.#pending.get(id);
    pending?.resolve({ taskId, replayed: pending.replayed });
  }

  /** Nothing ran for this message. Sends it again if the refusal can be retried. */
  #refused({ id, status, code, message, detail }: Extract<SessionServerFrame, { type: 'error' }>): void {
    const pending = this.#pending.get(id ?? '');
    if (pending === undefined) return;
    const error = new ApiError(status, code, typeof detail === 'string' ? detail : message);
    const wait = isLost(error) ? retryWait(pending.refusals++) : undefined;
    if (wait === undefined) pending.reject(error);
    else setTimeout(() => this.#send(pending), wait);
  }

  #set(state: LinkState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#listeners.forEach((listener) => listener());
  }
}
