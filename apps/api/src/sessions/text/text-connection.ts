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
  /** Of the upgrade. */
  headers: IncomingHttpHeaders;
  onUnexpected: (error: unknown) => void;
}

/** Requests of one socket that may wait for their answer. */
export const MAX_IN_FLIGHT = 1_024;
/** An open socket stands for its client: its sessions live as long, within their idle timeouts. */
const KEEP_ALIVE_MS = 60_000;

/**
 * One socket with any number of text sessions: requests `{id, op, session?, ...}`, answered out of order by `{id, ok, result | error}`; those of
 * one session in order. A socket that is cut leaves its sessions and their running turns alone.
 */
export class TextConnection {
  readonly #socket: WebSocket;
  readonly #options: TextConnectionOptions;
  readonly #sessions = new Set<string>();
  /** Whose `init` has no answer yet. */
  readonly #opening = new Set<string>();
  /** The end of what was last asked of each session. */
  readonly #ends = new Map<string, Promise<unknown>>();
  readonly #gone = new AbortController();
  #inFlight = 0;

  constructor(socket: WebSocket, options: TextConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    const keepAlive = setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS);
    keepAlive.unref();
    socket.on('message', (data) => this.#receive(String(data)));
    socket.on('close', () => {
      clearInterval(keepAlive);
      this.#gone.abort(new PalestraError('call_abandoned'));
      for (const sid of this.#opening) void options.server.engine.markCreateUndelivered(sid);
    });
  }

  #receive(text: string): void {
    let asked: JsonValue = null;
    try {
      asked = parseJson(text);
    } catch {
      return this.#send({ id: null, ok: false, error: errorBody(new PalestraError('invalid_json')) });
    }
    const id = idOf(asked);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      return this.#send({ id, ok: false, error: errorBody(new PalestraError('too_many_in_flight', { retryAfterSeconds: 1 })) });
    }
    this.#inFlight += 1;
    // It counts until the client has taken the answer, so that one who does not read is not answered without end.
    const done = () => void (this.#inFlight -= 1);
    this.#answer(asked).then(
      (result) => this.#send({ id, ok: true, result }, done),
      (error: unknown) => this.#send({ id, ok: false, error: this.#errorOf(error) }, done),
    );
  }

  async #answer(asked: JsonValue): Promise<JsonValue> {
    const request = new SchemaPipe().transform(asked, { type: 'body', schema: textClientFrameSchema } as never) as TextClientFrame;
    const { id: _id, op, session, ...body } = request;
    if (op === 'init') return this.#init({ ...body, ...(session !== undefined && { id: session }) });
    if (session === undefined || session === '') throw missing('session');
    return this.#inOrder(session, () => this.#onSession(op, session, body));
  }

  async #init(body: JsonObject): Promise<JsonValue> {
    const wanted = readOpenText(body);
    const sid = wanted.id ?? newTextId();
    const { texts, caller } = this.#options;
    const elsewhere = () => this.#elsewhere(sid, { method: 'POST', path: '/v1/text-sessions', body: { ...body, id: sid } });
    return this.#inOrder(sid, async () => {
      this.#opening.add(sid);
      try {
        const there = wanted.id === undefined ? null : await elsewhere();
        const opened = there ?? {
          body: await (wanted.id === undefined
            ? texts.openAs(caller, sid, wanted, this.#gone.signal)
            : texts.open(caller, { ...wanted, id: wanted.id }, this.#gone.signal)),
        };
        this.#sessions.add(sid);
        return opened.body;
      } catch (error) {
        const moved = error instanceof PalestraError && error.code === 'session_moved' ? await elsewhere() : null;
        if (moved === null) throw error;
        this.#sessions.add(sid);
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
        const there = await this.#elsewhere(sid, { method: 'POST', path: `${path}/step`, body });
        const played = there?.body ?? (await texts.step(caller, sid, step));
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

  /** The answer of the process that serves the session; null: it is served here. Its errors are thrown as they are. */
  async #elsewhere(sid: string, request: PeerRequest): Promise<{ body: JsonValue } | null> {
    const { server, caller, headers } = this.#options;
    const answer = await server.routing.askElsewhere(caller, headers, sid, request);
    if (answer !== null && answer.status >= 400) throw new PeerError(answer.status, answer.body as JsonObject);
    return answer;
  }

  async #inOrder<T>(sid: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#ends.get(sid) ?? Promise.resolve()).then(work);
    const end = mine
      .catch(() => {})
      .then(() => {
        if (this.#ends.get(sid) === end) this.#ends.delete(sid);
      });
    this.#ends.set(sid, end);
    return mine;
  }

  #keepAlive(): void {
    const { texts, caller } = this.#options;
    for (const sid of this.#sessions) {
      const request: PeerRequest = { method: 'GET', path: `/v1/text-sessions/${encodeURIComponent(sid)}`, body: null };
      this.#elsewhere(sid, request)
        .then(async (there) => there ?? texts.ping(caller, sid))
        // It has ended, or will say itself what is wrong when it is asked for.
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

/** What another process answered. */
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

function idOf(asked: JsonValue): string | number | null {
  const id: unknown = typeof asked === 'object' && asked !== null && 'id' in asked ? asked.id : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

const missing = (field: string) =>
  new PalestraError('invalid_body', { detail: [{ type: 'missing', loc: ['body', field], msg: 'Field required', input: null }] });
