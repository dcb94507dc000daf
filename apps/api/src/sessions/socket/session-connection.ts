import type { RawData, WebSocket } from 'ws';
import {
  type JsonObject,
  type JsonValue,
  PalestraError,
  parseJson,
  type SessionClientFrame,
  type SessionServerFrame,
  type SessionView,
  stringifyJson,
} from '@palestra/protocol';
import { type CallOutcome, type Caller, errorOfOutcome, type SessionEngine } from '@palestra/session';
import { sessionClientFrameSchema } from '@palestra/protocol/schemas';
import { SchemaPipe } from '../../platform/http/schema.pipe.ts';
import type { SessionEvents, SessionChanges } from '../events/session-events.service.ts';
import { type EventPosition, formatPosition } from '../events/session-event-cursor.ts';

export interface SessionConnectionOptions {
  sid: string;
  /** The position to which its client has read. */
  from: EventPosition;
  engine: SessionEngine;
  events: SessionEvents;
  view: () => Promise<SessionView>;
  /** The caller of the socket's credentials. Rejects when they are no longer valid. */
  authorise: () => Promise<Caller>;
  onUnexpected: (error: unknown) => void;
}

/** How many messages of one socket may wait for an answer, or for the client to read it. */
export const MAX_IN_FLIGHT = 32;
/** A client that does not read is disconnected. It can resume with the id of the last event that it read, and with its calls. */
const MAX_PENDING_BYTES = 32 * 1024 * 1024;
/** How soon a revoked key or a browser that signed out loses its socket, also when it sends nothing. */
const AUTHORISE_MS = 30_000;
/** How long after the end of the session answers of running calls may take. */
const LAST_ANSWERS_MS = 5_000;

const CLOSE = { ended: 1000, text: 1003, unauthorised: 1008, elsewhere: 1012 } as const;

/** One socket of a session: the client's calls, their answers, and the events of the session, in one order (docs/sessions.md). */
export class SessionConnection {
  readonly #socket: WebSocket;
  readonly #options: SessionConnectionOptions;
  #inFlight = 0;
  #ended = false;

  constructor(socket: WebSocket, options: SessionConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    const { events, sid, from } = options;
    const leave = events.watch(sid, from, (changes) => this.#tell(changes));
    const check = setInterval(() => void this.#caller().catch(() => {}), AUTHORISE_MS);
    check.unref();
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    // Running calls continue. The client can ask for them by their ids.
    socket.on('close', () => {
      clearInterval(check);
      leave();
    });
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (isBinary) return this.#socket.close(CLOSE.text);
    let message: JsonValue = null;
    try {
      message = parseJson(String(data));
    } catch {
      return this.#send(errorFrame(null, new PalestraError('invalid_json')));
    }
    const id = idOf(message);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      return this.#send(errorFrame(id, new PalestraError('too_many_in_flight', { retryAfterSeconds: 1 })));
    }
    this.#inFlight += 1;
    // A message counts until the client has read the answer, so that a client that does not read cannot fill our memory.
    const done = () => {
      this.#inFlight -= 1;
      if (this.#ended && this.#inFlight === 0) this.#socket.close(CLOSE.ended);
    };
    this.#answer(message).then(
      (text) => this.#send(text, done),
      (error: unknown) => this.#refuse(id, error, done),
    );
  }

  async #answer(message: JsonValue): Promise<string> {
    const ask = new SchemaPipe().transform(message, { type: 'body', schema: sessionClientFrameSchema } as never) as SessionClientFrame;
    const { engine, sid } = this.#options;
    const caller = await this.#caller();
    if (ask.type === 'call') return this.#call(caller, ask);
    // The events report the end of a session.
    await engine.ping(caller, sid).catch(() => {});
    return frame({ type: 'pong' });
  }

  async #call(caller: Caller, { id, tool, input }: SessionClientFrame & { type: 'call' }): Promise<string> {
    const { engine, events, sid } = this.#options;
    const call = await engine.call(caller, sid, { tool, input: input as JsonObject, taskId: null, idempotencyKey: id });
    const taskId = call.taskId ?? '';
    this.#send(frame({ type: 'accepted', id, task_id: taskId }));
    const running = call.outcome();
    events.onLocalChange(sid);
    const outcome = await running;
    events.onLocalChange(sid);
    return answerFrame(id, taskId, outcome);
  }

  #refuse(id: string | null, error: unknown, done: () => void): void {
    if (!(error instanceof PalestraError)) this.#options.onUnexpected(error);
    // The client opens another socket, which is connected to the process that serves the session now, and repeats the call.
    if (error instanceof PalestraError && error.code === 'session_moved') this.#socket.close(CLOSE.elsewhere);
    this.#send(errorFrame(id, error instanceof PalestraError ? error : new PalestraError('internal_error')), done);
  }

  /** Closes the socket when the credentials are no longer valid, but not when the database is unavailable. */
  async #caller(): Promise<Caller> {
    try {
      return await this.#options.authorise();
    } catch (error) {
      if (error instanceof PalestraError && [401, 403].includes(error.status)) this.#socket.close(CLOSE.unauthorised);
      throw error;
    }
  }

  async #tell({ before, position, calls, over }: SessionChanges): Promise<void> {
    // The session was purged or the database is unavailable: the socket ends without `end`, and the client asks again.
    const session = await this.#options.view().catch(() => null);
    if (session === null) return this.#socket.terminate();
    const event = formatPosition(before);
    for (const call of calls) this.#send(frame({ type: 'call', event, call }));
    // Calls change the sums of their session, so the session is always sent too, last and with the new position.
    this.#send(frame({ type: over ? 'end' : 'session', event: formatPosition(position), session }));
    if (!over) return;
    this.#ended = true;
    if (this.#inFlight === 0) this.#socket.close(CLOSE.ended);
    else setTimeout(() => this.#socket.close(CLOSE.ended), LAST_ANSWERS_MS).unref();
  }

  #send(text: string, done: () => void = () => {}): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return done();
    if (this.#socket.bufferedAmount > MAX_PENDING_BYTES) {
      this.#socket.terminate();
      return done();
    }
    this.#socket.send(text, () => done());
  }
}

const frame = (content: SessionServerFrame): string => stringifyJson(content);

function answerFrame(id: string, taskId: string, outcome: CallOutcome): string {
  if (outcome.type === 'result') {
    const head = frame({ type: 'result', id, task_id: taskId, result: null });
    // The stored text, so that numbers keep their spelling.
    return `${head.slice(0, -'null}'.length)}${outcome.text}}`;
  }
  const error = outcome.type === 'refused' ? errorOfOutcome(outcome) : new PalestraError('environment_failed', { detail: outcome.message });
  return errorFrame(id, error, taskId);
}

function errorFrame(id: string | null, error: PalestraError, taskId?: string): string {
  const { status, code, message, detail, retryAfterSeconds: after } = error;
  const where = taskId === undefined ? {} : { task_id: taskId };
  return frame({ type: 'error', id, ...where, status, code, message, detail, ...(after !== undefined && { retry_after: after }) });
}

function idOf(message: JsonValue): string | null {
  const id: unknown = typeof message === 'object' && message !== null && 'id' in message ? message.id : null;
  return typeof id === 'string' ? id : null;
}
