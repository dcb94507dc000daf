import { textClientFrameSchema, textStepSchema } from '@palestra/protocol/schemas';
import type { IncomingHttpHeaders } from 'node:http';
import type { WebSocket } from 'ws';
import {
  type JsonObject,
  type JsonValue,
  PalestraError,
  parseJson,
  type SocketError,
  stringifyJson,
  type TextClientFrame,
  type TextServerFrame,
  type TextStepBody,
} from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { SchemaPipe } from '../../platform/http/schema.pipe.ts';
import type { PeerRequest } from '../http/forwarder.ts';
import type { SessionServer } from '../server/session-server.ts';
import { readOpenText } from './text-opening.ts';
import { newTextId, type TextService } from './text.service.ts';

export interface TextConnectionOptions {
  texts: TextService;
  server: SessionServer;
  caller: Caller;
  /** Headers of the upgrade. */
  headers: IncomingHttpHeaders;
  onUnexpected: (error: unknown) => void;
}

/** How many requests of one socket may wait for their answers. */
export const MAX_IN_FLIGHT = 1_024;
/** How often an open socket keeps its sessions alive, within their idle timeouts. */
const KEEP_ALIVE_MS = 60_000;

/**
 * One socket with any number of text sessions. Requests are `{id, op, session?, ...}`, responses `{id, ok, result | error}`. Requests of one session
 * run in order, others at the same time. The end of a socket does not end its sessions or their running turns.
 */
export class TextConnection {
  readonly #socket: WebSocket;
  readonly #options: TextConnectionOptions;
  readonly #sessions = new Set<string>();
  /** SIDs of sessions whose `init` has no answer yet. */
  readonly #opening = new Set<string>();
  /** The end of the last request of each session. */
  readonly #lastRequests = new Map<string, Promise<unknown>>();
  readonly #disconnected = new AbortController();
  #inFlight = 0;

  constructor(socket: WebSocket, options: TextConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    const keepAlive = setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS);
    keepAlive.unref();
    socket.on('message', (data) => this.#receive(String(data)));
    socket.on('close', () => {
      clearInterval(keepAlive);
      this.#disconnected.abort(new PalestraError('call_abandoned'));
      for (const sid of this.#opening) void options.server.engine.markCreateUndelivered(sid);
    });
  }

  #receive(text: string): void {
    let message: JsonValue = null;
    try {
      message = parseJson(text);
    } catch {
      return this.#send({ id: null, ok: false, error: errorBody(new PalestraError('invalid_json')) });
    }
    const id = idOf(message);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      return this.#send({ id, ok: false, error: errorBody(new PalestraError('too_many_in_flight', { retryAfterSeconds: 1 })) });
    }
    this.#inFlight += 1;
    // A request counts until the client has read the response, so that a client that does not read cannot fill our memory.
    const done = () => void (this.#inFlight -= 1);
    this.#answer(message).then(
      (result) => this.#send({ id, ok: true, result }, done),
      (error: unknown) => this.#send({ id, ok: false, error: this.#errorOf(error) }, done),
    );
  }

  async #answer(message: JsonValue): Promise<JsonValue> {
    const request = new SchemaPipe().transform(message, { type: 'body', schema: textClientFrameSchema } as never) as TextClientFrame;
    const { id: _id, op, session, ...body } = request;
    if (op === 'init') return this.#init({ ...body, ...(session !== undefined && { id: session }) });
    if (session === undefined || session === '') throw missing('session');
    return this.#inOrder(session, () => this.#onSession(op, session, body));
  }

  async #init(body: JsonObject): Promise<JsonValue> {
    const options = readOpenText(body);
    const id = options.id ?? newTextId();
    const { texts, caller, server } = this.#options;
    const { signal } = this.#disconnected;
    const elsewhere = () => this.#elsewhere(id, { method: 'POST', path: '/v1/text-sessions', body: { ...body, id } });
    return this.#inOrder(id, async () => {
      const sid = options.id === undefined ? id : await server.engine.sidOf(caller, id);
      // From here on the end of the socket marks the session, so that its client can open it again.
      signal.throwIfAborted();
      this.#opening.add(sid);
      try {
        const remote = options.id === undefined ? null : await elsewhere();
        const opened = remote ?? { body: { ...(await texts.openAs(caller, sid, options, signal)), id } };
        this.#sessions.add(id);
        return opened.body;
      } catch (error) {
        const moved = error instanceof PalestraError && error.code === 'session_moved' ? await elsewhere() : null;
        if (moved === null) throw error;
        this.#sessions.add(id);
        return moved.body;
      } finally {
        this.#opening.delete(sid);
      }
    });
  }

  async #onSession(op: Exclude<TextClientFrame['op'], 'init'>, sid: string, body: JsonObject): Promise<JsonValue> {
    const { texts, caller } = this.#options;
    const path = `/v1/text-sessions/${encodeURIComponent(sid)}`;
    switch (op) {
      case 'step': {
        const step = new SchemaPipe().transform(body, { type: 'body', schema: textStepSchema } as never) as TextStepBody;
        const remote = await this.#elsewhere(sid, { method: 'POST', path: `${path}/step`, body });
        const played = remote?.body ?? (await texts.step(caller, sid, step));
        this.#sessions.add(sid);
        return played;
      }
      case 'metrics':
        return (await this.#elsewhere(sid, { method: 'GET', path: `${path}/metrics`, body: null }))?.body ?? texts.metrics(caller, sid);
      case 'close':
        this.#sessions.delete(sid);
        return (await this.#elsewhere(sid, { method: 'DELETE', path, body: null }))?.body ?? texts.close(caller, sid);
    }
  }

  /** The answer of another process; null when this process serves the session. Throws the other process's errors unchanged. */
  async #elsewhere(sid: string, request: PeerRequest): Promise<{ body: JsonValue } | null> {
    const { server, caller, headers } = this.#options;
    const answer = await server.routing.askElsewhere(caller, headers, sid, request);
    if (answer !== null && answer.status >= 400) throw new PeerError(answer.status, answer.body as JsonObject);
    return answer;
  }

  async #inOrder<T>(sid: string, work: () => Promise<T>): Promise<T> {
    const result = (this.#lastRequests.get(sid) ?? Promise.resolve()).then(work);
    const end = result
      .catch(() => {})
      .then(() => {
        if (this.#lastRequests.get(sid) === end) this.#lastRequests.delete(sid);
      });
    this.#lastRequests.set(sid, end);
    return result;
  }

  #keepAlive(): void {
    const { texts, caller } = this.#options;
    for (const sid of this.#sessions) {
      const request: PeerRequest = { method: 'GET', path: `/v1/text-sessions/${encodeURIComponent(sid)}`, body: null };
      this.#elsewhere(sid, request)
        .then(async (remote) => remote ?? texts.ping(caller, sid))
        // The session has ended, or its next request gets the error.
        .catch(() => this.#sessions.delete(sid));
    }
  }

  #errorOf(error: unknown): SocketError {
    if (error instanceof PeerError) return error.body;
    if (error instanceof PalestraError) return errorBody(error);
    this.#options.onUnexpected(error);
    return errorBody(new PalestraError('internal_error'));
  }

  #send(reply: TextServerFrame, done: () => void = () => {}): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return done();
    this.#socket.send(stringifyJson(reply), done);
  }
}

/** An error response of another process. */
class PeerError extends Error {
  readonly body: SocketError;

  constructor(status: number, { code = 'internal_error', message, detail }: JsonObject) {
    super(String(message));
    this.body = { status, code: String(code), message: String(message), detail };
  }
}

function errorBody(error: PalestraError): SocketError {
  const { status, code, message, detail, retryAfterSeconds } = error;
  return { status, code, message, detail, ...(retryAfterSeconds !== undefined && { retry_after: retryAfterSeconds }) };
}

function idOf(message: JsonValue): string | number | null {
  const id: unknown = typeof message === 'object' && message !== null && 'id' in message ? message.id : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

const missing = (field: string) =>
  new PalestraError('invalid_body', { detail: [{ type: 'missing', loc: ['body', field], msg: 'Field required', input: null }] });
