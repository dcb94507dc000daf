import type { QueryClient } from '@tanstack/react-query';
import type { SessionServerFrame } from '@palestra/protocol';
import { ApiError } from './http.ts';
import { callTool, isLost, newSid, pingSession, type PlayCall, type Played, retryWait } from './playground.ts';
import { followSession, refreshSession, showCall, showSession } from './sessions.ts';
import { whileVisible } from './stream.ts';

/**
 * `live`: calls and events go over one socket. `connecting`: it is being opened, calls wait. `http`: no socket comes through, so calls are posted and events are
 * streamed. `over`: the session has ended.
 */
export type LinkState = 'connecting' | 'live' | 'http' | 'over';

const OPEN_DEADLINE_MS = 5_000;
/** A socket that lived so long is no sign of a way that lets none through. */
const STEADY_MS = 5_000;
/** A server that says nothing for so long after a ping is not there any more. */
const PONG_DEADLINE_MS = 10_000;
const RECONNECT_MS = [250, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** After so many attempts in a row that opened no socket, or none that lasted, the page goes on over HTTP, and tries again now and then. */
const ATTEMPTS_BEFORE_HTTP = 2;

interface Waiting {
  id: string;
  call: PlayCall;
  signal: AbortSignal;
  onTaskId: (taskId: string) => void;
  resolve: (played: Played) => void;
  reject: (error: unknown) => void;
  taskId: string | null;
  /** It was accepted more than once: its stored result is read. */
  replayed: boolean;
  /** Refusals in a row that are worth another attempt. */
  refusals: number;
  /** It was posted over HTTP, and is answered there. */
  posted: boolean;
}

/**
 * A session that is played and followed (docs/sessions.md): every call has an id of ours, so that it can be sent again over the next socket, or
 * over HTTP, and never runs twice; events go on behind the last one that was read.
 */
export class SessionLink {
  #state: LinkState = 'connecting';
  readonly #listeners = new Set<() => void>();
  readonly #waiting = new Map<string, Waiting>();
  #socket: WebSocket | null = null;
  /** Id of the last event that was read. */
  #position: string | null = null;
  /** Attempts in a row that opened no socket, or none that lasted. */
  #failures = 0;
  #openedAt: number | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #probe: ReturnType<typeof setTimeout> | undefined;
  #stopFollowing: (() => void) | null = null;
  /** What was told is shown after what was read before it. */
  #shown: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly client: QueryClient,
    readonly sid: string,
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly state = (): LinkState => this.#state;

  /** Returns the function that stops it. */
  start(): () => void {
    this.#failures = 0;
    this.#set('connecting');
    this.#connect();
    return () => {
      const socket = this.#socket;
      this.#drop();
      clearTimeout(this.#again);
      this.#follow(false);
      if (socket?.readyState !== WebSocket.CONNECTING) return socket?.close(1000);
      // A browser complains of one that is closed before it is open.
      socket.addEventListener('open', () => socket.close(1000));
    };
  }

  /** Calls a tool, once, whatever happens to the connection. Resolves when the call has ended, however it ended: its event says how. */
  call(call: PlayCall, onTaskId: (taskId: string) => void, signal: AbortSignal): Promise<Played> {
    const id = newSid();
    return new Promise<Played>((resolve, reject) => {
      const waiting = { id, call, signal, onTaskId, resolve, reject, taskId: null, replayed: false, refusals: 0, posted: false };
      this.#waiting.set(id, waiting);
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.#post(waiting);
    }).finally(() => this.#waiting.delete(id));
  }

  /** Tells the session that somebody is here, and asks whether the server is. One that fails is no news. */
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
    if (this.#position !== null) url.searchParams.set('after', this.#position);
    const socket = new WebSocket(url);
    this.#socket = socket;
    const deadline = setTimeout(() => this.#lost(socket), OPEN_DEADLINE_MS);
    const mine = () => this.#socket === socket;
    socket.addEventListener('open', () => {
      clearTimeout(deadline);
      if (mine()) this.#opened();
      else socket.close(1000);
    });
    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      if (!mine()) return;
      clearTimeout(this.#probe);
      this.#hear(JSON.parse(data) as SessionServerFrame);
    });
    socket.addEventListener('close', () => {
      clearTimeout(deadline);
      this.#lost(socket);
    });
  }

  #opened(): void {
    this.#openedAt = Date.now();
    this.#follow(false);
    // What happened between the first read and the first socket.
    if (this.#position === null) this.#shown = refreshSession(this.client, this.sid).catch(() => {});
    this.#set('live');
    for (const waiting of this.#waiting.values()) this.#post(waiting);
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
    this.#again = setTimeout(() => this.#connect(), RECONNECT_MS[Math.min(this.#failures, RECONNECT_MS.length - 1)]);
    this.#failures += 1;
    if (this.#failures < ATTEMPTS_BEFORE_HTTP) return this.#set('connecting');
    this.#follow(true);
    this.#set('http');
    for (const waiting of this.#waiting.values()) this.#post(waiting);
  }

  /** By the event stream, while there is no socket. */
  #follow(on: boolean): void {
    if (on) this.#stopFollowing ??= whileVisible(() => followSession(this.client, this.sid));
    else {
      this.#stopFollowing?.();
      this.#stopFollowing = null;
    }
  }

  /** By whatever way is open; while none is, it waits. */
  #post(waiting: Waiting): void {
    const { id, call, signal, onTaskId, posted } = waiting;
    if (posted || !this.#waiting.has(id)) return;
    if (this.#state === 'live') {
      // As text, so that the numbers of its input keep their spelling.
      this.#socket?.send(`${JSON.stringify({ type: 'call', id, tool: call.tool }).slice(0, -1)},"input":${call.input}}`);
    } else if (this.#state !== 'connecting') {
      waiting.posted = true;
      callTool(this.sid, call, { id, taskId: waiting.taskId, signal, onTaskId }).then(waiting.resolve, waiting.reject);
    }
  }

  #hear(told: SessionServerFrame): void {
    switch (told.type) {
      case 'session':
        return this.#show(told.event, () => showSession(this.client, told.session));
      case 'call':
        return this.#show(told.event, () => showCall(this.client, this.sid, told.call));
      case 'end':
        this.#show(told.event, () => showSession(this.client, told.session));
        return this.#set('over');
      case 'accepted':
        return this.#accepted(told.id, told.task_id);
      case 'result':
        return this.#ended(told.id, told.task_id);
      case 'error':
        return told.task_id === undefined ? this.#refused(told) : this.#ended(told.id ?? '', told.task_id);
      case 'pong':
    }
  }

  #show(event: string, show: () => void): void {
    this.#shown = this.#shown.then(() => {
      this.#position = event;
      show();
    });
  }

  #accepted(id: string, taskId: string): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    waiting.replayed ||= waiting.taskId !== null;
    waiting.taskId = taskId;
    waiting.onTaskId(taskId);
  }

  #ended(id: string, taskId: string): void {
    const waiting = this.#waiting.get(id);
    waiting?.resolve({ taskId, replayed: waiting.replayed });
  }

  /** Nothing ran for that message: it is sent again where that may help. */
  #refused({ id, status, code, message, detail }: Extract<SessionServerFrame, { type: 'error' }>): void {
    const waiting = this.#waiting.get(id ?? '');
    if (waiting === undefined) return;
    const error = new ApiError(status, code, typeof detail === 'string' ? detail : message);
    const wait = isLost(error) ? retryWait(waiting.refusals++) : undefined;
    if (wait === undefined) waiting.reject(error);
    else setTimeout(() => this.#post(waiting), wait);
  }

  #set(state: LinkState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#listeners.forEach((listener) => listener());
  }
}
