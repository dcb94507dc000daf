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
import type { SessionEvents, SessionNews } from '../events/session-events.service.ts';
import { type EventPosition, formatPosition } from '../events/session-events.watcher.ts';

export interface SessionConnectionOptions {
  sid: string;
  /** Where its client has read to. */
  from: EventPosition;
  engine: SessionEngine;
  events: SessionEvents;
  view: () => Promise<SessionView>;
  /** Who the socket's credentials stand for now. Rejects once they stand for nobody. */
  authorise: () => Promise<Caller>;
  onUnexpected: (error: unknown) => void;
}

/** Messages of one socket that may wait for their answer, or whose answer its client has not taken yet. */
export const MAX_IN_FLIGHT = 32;
/** A client that takes nothing is cut; it comes back with the id of the last event that it read, and with its calls. */
const MAX_PENDING_BYTES = 32 * 1024 * 1024;
/** A key that was revoked, or a browser that signed out, loses its socket within about this time, though it sends nothing. */
const AUTHORISE_MS = 30_000;
/** So long the answers of calls that ran when the session ended may take. */
const LAST_ANSWERS_MS = 5_000;

const CLOSE = { ended: 1000, text: 1003, unauthorised: 1008, elsewhere: 1012 } as const;

/** One socket of a session: its client's calls and their answers, and what happens to the session, in one order (docs/sessions.md). */
export class SessionConnection {
  readonly #socket: WebSocket;
  readonly #options: SessionConnectionOptions;
  #inFlight = 0;
  #ended = false;

  constructor(socket: WebSocket, options: SessionConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    const { events, sid, from } = options;
    const leave = events.watch(sid, from, (news) => this.#tell(news));
    const check = setInterval(() => void this.#caller().catch(() => {}), AUTHORISE_MS);
    check.unref();
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    // Calls that run go on: their client comes back for them by their ids.
    socket.on('close', () => {
      clearInterval(check);
      leave();
    });
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (isBinary) return this.#socket.close(CLOSE.text);
    let asked: JsonValue = null;
    try {
      asked = parseJson(String(data));
    } catch {
      return this.#send(errorFrame(null, new PalestraError('invalid_json')));
    }
    const id = idOf(asked);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      return this.#send(errorFrame(id, new PalestraError('too_many_in_flight', { retryAfterSeconds: 1 })));
    }
    this.#inFlight += 1;
    // It counts until the client has taken the answer, so that one who does not read is not answered without end.
    const done = () => {
      this.#inFlight -= 1;
      if (this.#ended && this.#inFlight === 0) this.#socket.close(CLOSE.ended);
    };
    this.#answer(asked).then(
      (text) => this.#send(text, done),
      (error: unknown) => this.#refuse(id, error, done),
    );
  }

  async #answer(asked: JsonValue): Promise<string> {
    const ask = new SchemaPipe().transform(asked, { type: 'body', schema: sessionClientFrameSchema } as never) as SessionClientFrame;
    const { engine, sid } = this.#options;
    const caller = await this.#caller();
    if (ask.type === 'call') return this.#call(caller, ask);
    // One that has ended is told so by its events.
    await engine.ping(caller, sid).catch(() => {});
    return frame({ type: 'pong' });
  }

  async #call(caller: Caller, { id, tool, input }: SessionClientFrame & { type: 'call' }): Promise<string> {
    const { engine, events, sid } = this.#options;
    const call = await engine.call(caller, sid, { tool, input: input as JsonObject, taskId: null, idempotencyKey: id });
    const taskId = call.taskId ?? '';
    this.#send(frame({ type: 'accepted', id, task_id: taskId }));
    const running = call.outcome();
    events.soon(sid);
    const outcome = await running;
    events.soon(sid);
    return answerFrame(id, taskId, outcome);
  }

  #refuse(id: string | null, error: unknown, done: () => void): void {
    if (!(error instanceof PalestraError)) this.#options.onUnexpected(error);
    // The next socket is brought to the process that has the session now, and the call with it.
    if (error instanceof PalestraError && error.code === 'session_moved') this.#socket.close(CLOSE.elsewhere);
    this.#send(errorFrame(id, error instanceof PalestraError ? error : new PalestraError('internal_error')), done);
  }

  /** A database that is away says nothing about a key. */
  async #caller(): Promise<Caller> {
    try {
      return await this.#options.authorise();
    } catch (error) {
      if (error instanceof PalestraError && [401, 403].includes(error.status)) this.#socket.close(CLOSE.unauthorised);
      throw error;
    }
  }

  async #tell({ before, position, calls, over }: SessionNews): Promise<void> {
    // Purged meanwhile, or the database is away: the socket ends without `end`, and its client asks again.
    const session = await this.#options.view().catch(() => null);
    if (session === null) return this.#socket.terminate();
    const event = formatPosition(before);
    for (const call of calls) this.#send(frame({ type: 'call', event, call }));
    // Calls change the sums of their session: it is told with all news, and comes last, with the new position.
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
    // As it is stored, so that its numbers keep their spelling.
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

function idOf(asked: JsonValue): string | null {
  const id: unknown = typeof asked === 'object' && asked !== null && 'id' in asked ? asked.id : null;
  return typeof id === 'string' ? id : null;
}
