import { createTransport, type TransportOptions } from '#transport';
import { parseJson, stringifyJson, type JsonValue } from '@palestra/protocol';
import { retryAfterMs, systemClock } from '@palestra/kit';
import { SseParser } from '@palestra/kit/sse';
import { ClientError, ConnectionError, PalestraApiError, ToolFailedError } from './errors.ts';
import { RequestTimer } from './request-timer.ts';
import { requestRetry, type RetryPolicy, withRetry } from './retry.ts';
import type { HttpAnswer, RequestBody, Transport } from './transport.ts';

export interface ConnectionOptions extends TransportOptions {
  /** Origin of the API. */
  url: string;
  apiKey?: string;
  /** Origin of the session API, if it differs from `url`. */
  sessionUrl?: string;
  /** Aborts every request of this client. */
  signal?: AbortSignal;
}

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  body?: JsonValue;
  /** The JSON text of the body, instead of `body`. */
  text?: string;
  signal?: AbortSignal;
  /** Deadline of one attempt. */
  deadlineMs?: number;
  retry?: RetryPolicy;
}

/** What an event stream reports before its result. */
export interface StreamListeners {
  onTaskId?: (taskId: string) => void;
  onQueue?: (data: string) => void;
}

/** A stream without data for this long counts as dead; servers send a heartbeat every 10 s. */
const STALL_MS = 30_000;
/** A stream that lived this long received a heartbeat, so its failure does not consume a retry. */
const PROGRESS_MS = 10_000;
const DEADLINE_MS = 60_000;
/** Servers of `openreward` and `ors-sdk` redirect paths without a variant to their first environment. */
const MAX_REDIRECTS = 3;
/** A file that was sent is checked for at most ten minutes. */
const UPLOAD_STALL_MS = 660_000;

/** HTTP requests to one server, with API key, deadlines, retries and resumable event streams. */
export class Connection {
  readonly url: string;
  readonly #sessionUrl: string;
  readonly #transport: Transport;
  readonly #signal: AbortSignal | undefined;
  #headers: Record<string, string> = {};

  constructor(options: ConnectionOptions) {
    this.url = new URL(options.url).origin;
    this.#sessionUrl = options.sessionUrl ? new URL(options.sessionUrl).origin : this.url;
    this.#transport = createTransport(options);
    this.#signal = options.signal;
    if (options.apiKey) this.setApiKey(options.apiKey);
  }

  get isOneOrigin(): boolean {
    return this.url === this.#sessionUrl;
  }

  setApiKey(apiKey: string): void {
    this.#headers = { 'x-api-key': apiKey };
  }

  /** Returns the JSON of a 2xx response. */
  json(call: Call): Promise<JsonValue> {
    return withRetry(() => this.jsonOnce(call), call.retry ?? requestRetry, this.#signalOf(call));
  }

  /** Like `json`, without retries. */
  async jsonOnce(call: Call): Promise<JsonValue> {
    const timer = this.#timer(call, call.deadlineMs ?? DEADLINE_MS);
    try {
      const answer = await this.#send(call, timer);
      const text = await answer.text();
      return text === '' ? null : parseJson(text);
    } catch (error) {
      throw this.#toError(error, call, timer);
    } finally {
      timer.end();
    }
  }

  /** Uploads a body of any size, opened for every attempt, and returns the JSON of the 2xx response. */
  upload(call: Call, open: () => Exclude<RequestBody, string>): Promise<JsonValue> {
    const attempt = async () => {
      const body = open();
      const timer = this.#timer(call, UPLOAD_STALL_MS);
      try {
        const headers = { 'content-type': 'application/octet-stream', ...call.headers };
        const answer = await this.#send({ ...call, headers }, timer, isBlob(body) ? body : touching(body, timer));
        return parseJson(await answer.text());
      } catch (error) {
        throw this.#toError(error, call, timer);
      } finally {
        timer.end();
        (body as { destroy?: () => void }).destroy?.();
      }
    };
    return withRetry(attempt, call.retry ?? requestRetry, this.#signalOf(call));
  }

  /** Opens the body of a 2xx response. Reading it rejects with a `ConnectionError` if the connection breaks or is silent. */
  async openStream(call: Call): Promise<AsyncGenerator<Uint8Array>> {
    const { chunks } = await this.#open(call);
    return chunks;
  }

  /**
   * Opens a file. While it is read, an interrupted or silent connection continues at the first missing byte, by a range, so that the file
   * is complete.
   */
  async download(call: Call): Promise<AsyncIterable<Uint8Array>> {
    const first = await withRetry(() => this.#open(call), call.retry ?? requestRetry, this.#signalOf(call));
    return this.#resume(call, first.chunks);
  }

  async *#resume(call: Call, first: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
    let chunks = first;
    let received = 0;
    for (let fruitless = 0; ; fruitless += 1) {
      try {
        for await (const bytes of chunks) {
          received += bytes.length;
          fruitless = 0;
          yield bytes;
        }
        return;
      } catch (error) {
        if (!(error instanceof ConnectionError) || fruitless >= requestRetry.retries) throw error;
      }
      await systemClock.sleep(fruitless * requestRetry.minDelayMs, this.#signalOf(call));
      chunks = await withRetry(() => this.#openRest(call, received), call.retry ?? requestRetry, this.#signalOf(call));
    }
  }

  async #openRest(call: Call, received: number): Promise<AsyncGenerator<Uint8Array>> {
    if (received === 0) return (await this.#open(call)).chunks;
    const { answer, chunks } = await this.#open({ ...call, headers: { ...call.headers, range: `bytes=${received}-` } });
    if (answer.status === 206) return chunks;
    await chunks.return(undefined);
    const failure = { failureClass: 'infrastructure', retryable: false, advice: 'Download the file again.' } as const;
    throw new ClientError(`${call.path}: the connection broke after ${received} bytes, and the server cannot send the rest`, failure);
  }

  /**
   * Returns the text of an event stream, or ''. An interrupted or silent stream is requested again with its task id, so that the
   * call runs once. Rejects with `ToolFailedError` if the tool raised an error. `isCall`: a failure that the stream reports is the recorded
   * outcome of a call, so it is not retried.
   */
  stream(call: Call, listeners: StreamListeners, isCall: boolean): Promise<string> {
    let taskId: string | null = null;
    const attempt = () => {
      const body = taskId === null ? call.body : { ...(call.body as object), task_id: taskId };
      const onTaskId = (id: string) => {
        taskId = id;
        listeners.onTaskId?.(id);
      };
      return this.#streamOnce({ ...call, body }, { ...listeners, onTaskId }, isCall);
    };
    return withRetry(attempt, call.retry ?? requestRetry, this.#signalOf(call));
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #streamOnce(call: Call, { onTaskId, onQueue }: StreamListeners, isCall: boolean): Promise<string> {
    const startedAt = Date.now();
    const madeProgress = () => Date.now() - startedAt > PROGRESS_MS;
    const timer = this.#timer(call, STALL_MS);
    const pieces: string[] = [];
    const seen = { hasEnded: false, failure: null as ClientError | null };
    try {
      // `x-palestra-failure`: a failure has its code (docs/sessions.md#failures-in-event-streams).
      const headers = { ...call.headers, accept: 'text/event-stream', 'x-palestra-failure': '1' };
      const answer = await this.#send({ ...call, headers }, timer);
      const parser = new SseParser();
      // To the end of the body, also after the last event, so that the connection can be used again.
      await answer.read((bytes) => {
        timer.touch();
        for (const { event, data } of parser.push(bytes)) {
          if (event === 'task_id') onTaskId?.(data);
          else if (event === 'queue') onQueue?.(data);
          else if (event === 'chunk' || event === 'end') pieces.push(data);
          if (event === 'end') seen.hasEnded = true;
          else if (event === 'error') seen.failure = new ToolFailedError(data || 'the tool failed without a message');
          else if (event === 'failure') seen.failure = failureOf(data, isCall);
        }
      });
    } catch (error) {
      if (!seen.hasEnded && seen.failure === null) throw this.#toError(error, call, timer, madeProgress());
    } finally {
      timer.end();
    }
    if (seen.failure !== null) throw seen.failure;
    if (!seen.hasEnded) throw new ConnectionError(`${call.path}: the stream ended without a result`, madeProgress());
    return pieces.join('');
  }

  async #open(call: Call): Promise<{ answer: HttpAnswer; chunks: AsyncGenerator<Uint8Array> }> {
    const timer = this.#timer(call, STALL_MS);
    try {
      const answer = await this.#send(call, timer);
      return { answer, chunks: this.#chunks(answer, call, timer) };
    } catch (error) {
      timer.end();
      throw this.#toError(error, call, timer);
    }
  }

  async *#chunks(answer: HttpAnswer, call: Call, timer: RequestTimer): AsyncGenerator<Uint8Array> {
    try {
      for await (const bytes of answer.chunks()) {
        timer.touch();
        yield bytes;
        // The time that the reader takes does not count.
        timer.touch();
      }
    } catch (error) {
      throw this.#toError(error, call, timer);
    } finally {
      timer.end();
    }
  }

  async #send(call: Call, timer: RequestTimer, bytes: RequestBody | null = null): Promise<HttpAnswer> {
    const origin = call.path.startsWith('/v1/') ? this.url : this.#sessionUrl;
    let { path } = call;
    for (let redirects = 0; ; redirects += 1) {
      const answer = await this.#sendOnce(origin, { ...call, path }, timer, bytes);
      const target = bytes === null && redirects < MAX_REDIRECTS ? targetOf(answer, origin + path) : null;
      if (target === null) {
        if (answer.status >= 300) throw await readError(answer);
        return answer;
      }
      await answer.text();
      path = target;
    }
  }

  #sendOnce(origin: string, call: Call, timer: RequestTimer, bytes: RequestBody | null): Promise<HttpAnswer> {
    const text = call.text ?? (call.body === undefined ? undefined : stringifyJson(call.body));
    return this.#transport.send({
      origin,
      path: call.path,
      method: call.method ?? 'GET',
      headers: { ...this.#headers, ...(text === undefined ? {} : { 'content-type': 'application/json' }), ...call.headers },
      body: text ?? bytes,
      onAbort: (abort) => timer.onAbort(abort),
    });
  }

  #timer(call: Call, timeoutMs: number): RequestTimer {
    const signals = [this.#signal, call.signal].filter((signal) => signal !== undefined);
    for (const signal of signals) this.#transport.share(signal);
    return new RequestTimer(timeoutMs, signals);
  }

  /** The signal that ends retries. */
  #signalOf({ signal }: Call): AbortSignal | undefined {
    if (signal === undefined || this.#signal === undefined) return signal ?? this.#signal;
    return AbortSignal.any([signal, this.#signal]);
  }

  /** Returns the error to throw: the caller's abort reason unchanged, and a `ConnectionError` for any other missing response. */
  #toError(error: unknown, call: Call, timer: RequestTimer, madeProgress = false): unknown {
    if (error instanceof ClientError) return error;
    for (const signal of [call.signal, this.#signal]) if (signal?.aborted) return signal.reason;
    if (error instanceof SyntaxError) return new ConnectionError(`${call.path}: the response is not JSON`, false, { cause: error });
    const reason = timer.isLate ? `no response within ${timer.timeoutMs / 1_000} s` : describe(error);
    return new ConnectionError(`${call.path}: ${reason}`, madeProgress, { cause: error });
  }
}

/** The path of a redirect that keeps method and body, within the server: no other one may get the key and secrets. null: none. */
function targetOf(answer: HttpAnswer, url: string): string | null {
  if (answer.status !== 307 && answer.status !== 308) return null;
  const location = answer.header('location');
  const target = location !== null && URL.canParse(location, url) ? new URL(location, url) : null;
  return target?.origin === new URL(url).origin ? target.pathname + target.search : null;
}

const isBlob = (body: Exclude<RequestBody, string>): body is Blob => body instanceof Blob;

/** The body, whose progress restarts the timer. */
async function* touching(body: AsyncIterable<Uint8Array>, timer: RequestTimer): AsyncGenerator<Uint8Array> {
  for await (const bytes of body) {
    timer.touch();
    yield bytes;
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A refused dual-stack connection is an AggregateError with an empty message.
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return inner instanceof Error && inner.message ? inner.message : error.name;
}

interface ErrorBody {
  code?: unknown;
  detail?: unknown;
  message?: unknown;
  status?: unknown;
}

function parseObject(text: string): ErrorBody {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    // The response of a proxy.
    return {};
  }
}

async function readError(answer: HttpAnswer): Promise<PalestraApiError> {
  const text = await answer.text();
  const body = parseObject(text);
  const detail = body.detail ?? body.message ?? (text.slice(0, 500) || 'no detail');
  return new PalestraApiError(
    typeof body.code === 'string' ? body.code : null,
    answer.status,
    typeof detail === 'string' ? detail : JSON.stringify(detail),
    retryAfterMs(answer.header('retry-after'), Date.now()),
    answer.header('x-backend-state') === 'starting',
  );
}

/** The error of an event `failure`. A tool that raised an error has no code. */
function failureOf(data: string, isCall: boolean): ClientError {
  const { code, status, detail } = parseObject(data);
  const text = typeof detail === 'string' ? detail : 'the call failed without a message';
  if (typeof code !== 'string') return new ToolFailedError(text);
  const known = typeof status === 'number' ? status : 500;
  // A client that has waited for a slot as long as it may does not queue again.
  return new PalestraApiError(code, known, text, null, false, isCall || known === 429);
}
