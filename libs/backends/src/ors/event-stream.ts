import { systemClock } from '@palestra/kit';
import { CALL_ID_HEADER, PalestraError, SseParser, stringifyJson, type JsonObject } from '@palestra/protocol';
import { ToolFailedError } from '@palestra/session';
import pRetry from 'p-retry';
import { type OrsConnection, OrsConnectionError } from './connection.ts';
import type { UpstreamAnswer } from './upstream-answer.ts';

export interface StreamedRequest {
  path: string;
  sid: string;
  body: JsonObject;
  /** The server's id of this request when it is known already: the request then only attaches to the running one. */
  upstreamTaskId: string | null;
  /** By which the server runs this request once, however often it comes; null where it cannot. */
  callId: string | null;
  /** Told as soon as the server named its id. */
  onTaskId(upstreamTaskId: string): void;
  /** Maps a refusal before the stream started; nothing ran then. */
  onRefused(answer: UpstreamAnswer): Promise<PalestraError> | PalestraError;
}

const RESUME_LIMIT_MS = 60_000;
const FIRST_PAUSE_MS = 250;
const REST_LIMIT_MS = 2_000;

/** The stream ended or broke before the result was complete, but the server's id for it is known. */
class StreamCut extends Error {}

function outcomeUnknown(why: string, cause?: unknown): PalestraError {
  return new PalestraError('session_lost', {
    detail: `Session lost: ${why} The call may or may not have run; it was not repeated.`,
    cause,
  });
}

/**
 * Posts a request that answers as an event stream, and returns the text of its result. A stream that breaks is resumed under
 * the server's own task id, so the tool runs once; without an id the outcome is unknown and said to be.
 */
export async function postForResult(connection: OrsConnection, request: StreamedRequest, signal: AbortSignal): Promise<string> {
  let taskId = request.upstreamTaskId;
  const attempt = async (): Promise<string> => {
    const body = stringifyJson(taskId === null ? request.body : { ...request.body, task_id: taskId });
    const opened = await open(connection, request, body, taskId !== null, signal);
    return readResult(opened, (id) => {
      taskId = id;
      request.onTaskId(id);
    });
  };
  const mayResume = (error: unknown) =>
    (taskId !== null || request.callId !== null) && (error instanceof StreamCut || error instanceof OrsConnectionError);
  try {
    return await attempt().catch(async (first: unknown) => {
      if (!mayResume(first)) throw first;
      await systemClock.sleep(FIRST_PAUSE_MS * (1 + Math.random()), signal);
      return pRetry(attempt, {
        retries: 20,
        minTimeout: 2 * FIRST_PAUSE_MS,
        maxTimeout: 5_000,
        maxRetryTime: RESUME_LIMIT_MS,
        randomize: true,
        signal,
        shouldRetry: ({ error }) => mayResume(error),
      });
    });
  } catch (error) {
    if (error instanceof StreamCut) throw outcomeUnknown('the environment server closed the stream of a running call.', error);
    if (!(error instanceof OrsConnectionError)) throw error;
    if (taskId === null && !error.sent) {
      throw new PalestraError('backend_unreachable', { retryAfterSeconds: 2, cause: error });
    }
    throw outcomeUnknown(`the connection to the environment server broke (${error.message}).`, error);
  }
}

async function open(
  connection: OrsConnection,
  request: StreamedRequest,
  body: string,
  resuming: boolean,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const headers = { accept: 'text/event-stream', ...(request.callId !== null && { [CALL_ID_HEADER]: request.callId }) };
  const opened = await connection.stream({ method: 'POST', path: request.path, sid: request.sid, body, headers }, signal);
  if (!('status' in opened)) return opened;
  if (resuming) throw outcomeUnknown(`the environment server refused to resume it (HTTP ${opened.status}).`);
  if (opened.status === 502 || opened.status === 504) {
    throw outcomeUnknown(`a proxy in front of the environment server answered ${opened.status}.`);
  }
  throw await request.onRefused(opened);
}

async function readResult(pieces: AsyncIterable<Uint8Array>, onTaskId: (id: string) => void): Promise<string> {
  const parser = new SseParser();
  const iterator = pieces[Symbol.asyncIterator]();
  let text = '';
  // Not `for await`: leaving it would destroy the connection, and the next call would have to open another one.
  for (let piece = await iterator.next(); !piece.done; piece = await iterator.next()) {
    for (const event of parser.push(piece.value)) {
      if (event.event === 'task_id') onTaskId(event.data);
      else if (event.event === 'chunk') text += event.data;
      else if (event.event === 'end' || event.event === 'error') {
        void readRest(iterator);
        if (event.event === 'end') return text + event.data;
        if (event.data === 'unknown task_id') throw outcomeUnknown('the environment server no longer knows the result of a call.');
        throw new ToolFailedError(event.data || 'Unknown SSE error');
      }
    }
  }
  throw new StreamCut('the stream ended without a result');
}

/** What follows the last event: the end of the body, at once. A server that goes on instead loses its connection. */
async function readRest(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  const impatient = setTimeout(() => void iterator.return?.().catch(() => {}), REST_LIMIT_MS);
  impatient.unref();
  try {
    while (!(await iterator.next()).done);
  } catch {
    // The result is known already.
  } finally {
    clearTimeout(impatient);
  }
}
