import { CALL_ID_HEADER, SseParser } from '@palestra/kit/sse';
import { PalestraError, stringifyJson, type JsonObject } from '@palestra/protocol';
import { ToolFailedError } from '@palestra/session';
import { ANSWER_LIMITS, answerTooLarge, assertParsable } from '@palestra/outbound';
import { type OrsConnection, OrsConnectionError } from './connection.ts';
import type { UpstreamAnswer } from '../wire/server-errors.ts';

export interface StreamedRequest {
  path: string;
  sid: string;
  body: JsonObject;
  /** The server's id of the call, if known: the request then attaches to the running call. */
  upstreamTaskId: string | null;
  /** The id by which the server runs this request once; null if it does not support that. */
  callId: string | null;
  /** Called when the server sends its id. */
  onTaskId(upstreamTaskId: string): void;
  /** Maps an error response; nothing ran. */
  onRefused(answer: UpstreamAnswer): Promise<PalestraError> | PalestraError;
}

/** How long a request is sent again that reached no server, or only a proxy without one (503). */
const NOT_SENT_LIMIT_MS = 15_000;
const FIRST_PAUSE_MS = 250;
const LAST_PAUSE_MS = 5_000;
const LEAST_WAIT_MS = 1_000;
const REST_LIMIT_MS = 2_000;
/** Lines of one event. Each costs the parser more memory than its bytes. */
const MAX_EVENT_LINES = 100_000;

/** The stream ended before the result was complete. */
class StreamCut extends Error {}

/** Instead of the stream of a call that may run, an answer that the server is unavailable for the moment. The message says which one. */
class UnavailableAnswer extends StreamCut {}

function outcomeUnknown(reason: string, cause?: unknown): PalestraError {
  return new PalestraError('session_lost', {
    detail: `Session lost: ${reason} The call may or may not have run; it was not repeated.`,
    cause,
  });
}

/**
 * Posts a request that answers with an event stream and returns the text of its result. A stream that breaks or is silent is resumed by the
 * server's task id, so that the tool runs once. Without an id the outcome is unknown. Gives up when the server has been silent or
 * unavailable for `connection.silenceMs`; a tool whose server sends heartbeats can run for any time.
 */
export async function postForResult(connection: OrsConnection, request: StreamedRequest, signal: AbortSignal): Promise<string> {
  const { clock } = connection;
  const call = new RunningCall(request, clock.now());
  if (request.upstreamTaskId === null) await connection.ensureAlive(signal);
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
    try {
      return await attempt(connection, request, call, signal);
    } catch (error) {
      const isRefused = error instanceof PalestraError && error.code === 'backend_unreachable';
      if (!(isRefused || error instanceof StreamCut || error instanceof OrsConnectionError)) throw error;
      call.mayRun ||= error instanceof StreamCut || (error instanceof OrsConnectionError && error.sent);
      const again = clock.now() + pauseMs;
      if (again >= call.deadlineMs(connection.silenceMs)) throw isRefused ? error : call.lost(error);
    }
    await clock.sleep(pauseMs * (1 + Math.random() / 2), signal);
  }
}

/** State of a call whose stream can be opened several times. */
class RunningCall {
  /** The server's id of the call. */
  taskId: string | null;
  /** The server may have started it. */
  mayRun: boolean;
  readonly startedAt: number;
  readonly #callId: string | null;
  lastSignAt: number;

  constructor(request: StreamedRequest, now: number) {
    this.taskId = request.upstreamTaskId;
    this.#callId = request.callId;
    this.mayRun = this.taskId !== null;
    this.startedAt = now;
    this.lastSignAt = now;
  }

  /** A call that may have run is sent again only with an id that prevents a second run. */
  deadlineMs(silenceMs: number): number {
    if (!this.mayRun) return this.startedAt + Math.min(NOT_SENT_LIMIT_MS, silenceMs);
    return this.taskId === null && this.#callId === null ? 0 : this.lastSignAt + silenceMs;
  }

  lost(error: StreamCut | OrsConnectionError): PalestraError {
    if (!this.mayRun) return new PalestraError('backend_unreachable', { retryAfterSeconds: 2, cause: error });
    if (error instanceof UnavailableAnswer) return outcomeUnknown(error.message, error);
    if (error instanceof StreamCut) return outcomeUnknown('the environment server closed the stream of a running call.', error);
    return outcomeUnknown(`the connection to the environment server broke (${error.message}).`, error);
  }
}

async function attempt(connection: OrsConnection, request: StreamedRequest, call: RunningCall, signal: AbortSignal): Promise<string> {
  const { clock, silenceMs } = connection;
  const { taskId } = call;
  const body = stringifyJson(taskId === null ? request.body : { ...request.body, task_id: taskId });
  const headMs = call.mayRun ? call.lastSignAt + silenceMs - clock.now() : silenceMs;
  const opened = await open(connection, request, body, call.mayRun, Math.max(headMs, LEAST_WAIT_MS), signal);
  call.mayRun = true;
  return readResult(
    opened,
    () => void (call.lastSignAt = clock.now()),
    (id) => {
      call.taskId = id;
      request.onTaskId(id);
    },
  );
}

async function open(
  connection: OrsConnection,
  request: StreamedRequest,
  body: string,
  mayRun: boolean,
  headMs: number,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const headers = { accept: 'text/event-stream', ...(request.callId !== null && { [CALL_ID_HEADER]: request.callId }) };
  const opened = await connection.stream({ method: 'POST', path: request.path, sid: request.sid, body, headers }, headMs, signal);
  if (!('status' in opened)) return opened;
  const { status } = opened;
  // The proxy may have lost the server after it had sent the request on.
  if (status === 502 || status === 504) throw new UnavailableAnswer(`a proxy in front of the environment server answered ${status}.`);
  const refused = `the environment server refused to go on with a call (HTTP ${status}).`;
  // This request did not run, but an earlier one may: its id finds the call later.
  if (mayRun && (status === 429 || status === 503)) throw new UnavailableAnswer(refused);
  if (mayRun) throw outcomeUnknown(refused);
  throw await request.onRefused(opened);
}

async function readResult(pieces: AsyncIterable<Uint8Array>, onSign: () => void, onTaskId: (id: string) => void): Promise<string> {
  const parser = new SseParser();
  const iterator = pieces[Symbol.asyncIterator]();
  let text = '';
  let size = 0;
  let lines = 0;
  // `for await` would destroy the connection, and the next call would need a new one.
  for (let piece = await iterator.next(); !piece.done; piece = await iterator.next()) {
    onSign();
    if ((size += piece.value.length) > ANSWER_LIMITS.call) {
      void iterator.return?.().catch(() => {});
      throw answerTooLarge(ANSWER_LIMITS.call);
    }
    const events = parser.push(piece.value);
    lines = events.length > 0 ? 0 : lines + countLines(piece.value);
    if (lines > MAX_EVENT_LINES) {
      void iterator.return?.().catch(() => {});
      throw answerTooLarge(ANSWER_LIMITS.call);
    }
    for (const event of events) {
      if (event.event === 'task_id') onTaskId(event.data);
      else if (event.event === 'chunk') text += event.data;
      else if (event.event === 'end' || event.event === 'error') {
        void readRest(iterator);
        if (event.event === 'end') return parsable(text + event.data);
        if (event.data === 'unknown task_id') throw outcomeUnknown('the environment server no longer knows the result of a call.');
        throw new ToolFailedError(event.data || 'Unknown SSE error');
      }
    }
  }
  throw new StreamCut('the stream ended without a result');
}

function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (const byte of piece) if (byte === 0x0a || byte === 0x0d) lines += 1;
  return lines;
}

function parsable(text: string): string {
  assertParsable(text);
  return text;
}

/** Reads the end of the body. Closes the connection of a server that goes on. */
async function readRest(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  const timer = setTimeout(() => void iterator.return?.().catch(() => {}), REST_LIMIT_MS);
  timer.unref();
  try {
    while (!(await iterator.next()).done);
  } catch {
    // The result is already complete.
  } finally {
    clearTimeout(timer);
  }
}
