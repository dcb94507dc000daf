import type { Readable } from 'node:stream';
import { parseJson, stringifyJson, type JsonValue } from '@palestra/protocol';
import { retryAfterMs } from '@palestra/kit';
import { SseParser } from '@palestra/kit/sse';
import { Agent, type Dispatcher, request } from 'undici';
import { ConnectionError, PalestraApiError, ToolFailedError } from './errors.ts';
import { requestRetry, type RetryPolicy, withRetry } from './retry.ts';

export interface ConnectionOptions {
  /** Origin of the API. */
  url: string;
  apiKey?: string;
  /** Origin of the session API, if it differs from `url`. */
  sessionUrl?: string;
  /** Aborts every request of this client. */
  signal?: AbortSignal;
  /** An undici dispatcher, for proxies, connection limits or tests. */
  dispatcher?: Dispatcher;
}

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  body?: JsonValue;
  signal?: AbortSignal;
  /** Deadline of one attempt. */
  deadlineMs?: number;
  retry?: RetryPolicy;
}

/** A stream without data for this long counts as dead; servers send a heartbeat every 10 s. */
const STALL_MS = 30_000;
/** A stream that lived this long received a heartbeat, so its failure does not consume a retry. */
const PROGRESS_MS = 10_000;
const DEADLINE_MS = 60_000;

/** HTTP requests to one server, with API key, deadlines, retries and resumable event streams. */
export class Connection {
  readonly url: string;
  readonly #sessionUrl: string;
  readonly #headers: Record<string, string>;
  readonly #dispatcher: Dispatcher;
  readonly #ownsDispatcher: boolean;
  readonly #signal: AbortSignal | undefined;

  constructor(options: ConnectionOptions) {
    this.url = new URL(options.url).origin;
    this.#sessionUrl = options.sessionUrl ? new URL(options.sessionUrl).origin : this.url;
    this.#headers = { 'user-agent': 'palestra-client/0.1.0', ...(options.apiKey ? { 'x-api-key': options.apiKey } : {}) };
    this.#ownsDispatcher = options.dispatcher === undefined;
    // Signals enforce the deadlines: a prompt can wait half an hour for setup.
    this.#dispatcher = options.dispatcher ?? new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000 });
    this.#signal = options.signal;
  }

  get isOneOrigin(): boolean {
    return this.url === this.#sessionUrl;
  }

  /** Returns the JSON of a 2xx response. */
  json(call: Call): Promise<JsonValue> {
    return withRetry(() => this.jsonOnce(call), call.retry ?? requestRetry, this.#combine(call.signal));
  }

  /** Like `json`, without retries. */
  async jsonOnce(call: Call): Promise<JsonValue> {
    const deadlineMs = call.deadlineMs ?? DEADLINE_MS;
    const signal = this.#combine(call.signal, AbortSignal.timeout(deadlineMs));
    try {
      const answer = await this.#send(call, signal);
      const text = await answer.body.text();
      return text === '' ? null : parseJson(text);
    } catch (error) {
      throw this.#toError(error, call, `no response within ${deadlineMs / 1000} s`);
    }
  }

  /** Uploads a body of any size, opened for every attempt, and returns the JSON of the 2xx response. Without a deadline. */
  upload(call: Call, open: () => Readable): Promise<JsonValue> {
    const attempt = async () => {
      const body = open();
      try {
        const answer = await this.#send(
          { ...call, headers: { 'content-type': 'application/octet-stream' } },
          this.#combine(call.signal),
          body,
        );
        return parseJson(await answer.body.text());
      } catch (error) {
        throw this.#toError(error, call, 'the connection broke');
      } finally {
        body.destroy();
      }
    };
    return withRetry(attempt, call.retry ?? requestRetry, this.#combine(call.signal));
  }

  /** Returns the body of a 2xx response. The caller must read it to its end. */
  async download(call: Call): Promise<AsyncIterable<Uint8Array>> {
    const answer = await this.#send(call, this.#combine(call.signal)).catch((error: unknown) => {
      throw this.#toError(error, call, 'the connection broke');
    });
    return answer.body;
  }

  /**
   * Returns the text of an event stream, or ''. An interrupted or silent stream is requested again with its task id, so that the
   * call runs once. Rejects with `ToolFailedError` on the event `error`.
   */
  stream(call: Call, onTaskId: (taskId: string) => void = () => {}): Promise<string> {
    let taskId: string | null = null;
    const attempt = () => {
      const body = taskId === null ? call.body : { ...(call.body as object), task_id: taskId };
      return this.#streamOnce({ ...call, body }, (id) => {
        taskId = id;
        onTaskId(id);
      });
    };
    return withRetry(attempt, call.retry ?? requestRetry, this.#combine(call.signal));
  }

  async close(): Promise<void> {
    if (this.#ownsDispatcher) await this.#dispatcher.close();
  }

  async #streamOnce(call: Call, onTaskId: (taskId: string) => void): Promise<string> {
    const stall = new AbortController();
    const startedAt = Date.now();
    const timer = setTimeout(() => stall.abort(), STALL_MS);
    const pieces: string[] = [];
    try {
      const answer = await this.#send(
        { ...call, headers: { ...call.headers, accept: 'text/event-stream' } },
        this.#combine(call.signal, stall.signal),
      );
      const parser = new SseParser();
      for await (const bytes of answer.body as AsyncIterable<Uint8Array>) {
        timer.refresh();
        for (const { event, data } of parser.push(bytes)) {
          if (event === 'task_id') onTaskId(data);
          else if (event === 'chunk' || event === 'end') pieces.push(data);
          if (event === 'end') return pieces.join('');
          if (event === 'error') throw new ToolFailedError(data || 'the tool failed without a message');
        }
      }
      throw new ConnectionError(`${call.path}: the stream ended without a result`, Date.now() - startedAt > PROGRESS_MS);
    } catch (error) {
      throw this.#toError(error, call, `no data for ${STALL_MS / 1000} s`, Date.now() - startedAt > PROGRESS_MS);
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(call: Call, signal: AbortSignal, bytes: Readable | null = null): Promise<Dispatcher.ResponseData> {
    const origin = call.path.startsWith('/v1/') ? this.url : this.#sessionUrl;
    const hasBody = call.body !== undefined;
    const answer = await request(origin + call.path, {
      method: call.method ?? 'GET',
      headers: { ...this.#headers, ...(hasBody ? { 'content-type': 'application/json' } : {}), ...call.headers },
      body: hasBody ? stringifyJson(call.body) : bytes,
      signal,
      dispatcher: this.#dispatcher,
    });
    if (answer.statusCode >= 300) throw await readError(answer);
    return answer;
  }

  #combine(...signals: (AbortSignal | undefined)[]): AbortSignal {
    return AbortSignal.any([this.#signal, ...signals].filter((signal) => signal !== undefined));
  }

  /** Returns the error to throw: the caller's abort reason unchanged, and a `ConnectionError` for any other missing response. */
  #toError(error: unknown, call: Call, onTimeout: string, madeProgress = false): unknown {
    if (error instanceof PalestraApiError || error instanceof ConnectionError || error instanceof ToolFailedError) return error;
    for (const signal of [call.signal, this.#signal]) if (signal?.aborted) return signal.reason;
    if (error instanceof SyntaxError) return new ConnectionError(`${call.path}: the response is not JSON`, false, { cause: error });
    const name = error instanceof Error ? error.name : '';
    const reason = name === 'TimeoutError' || name === 'AbortError' ? onTimeout : describe(error);
    return new ConnectionError(`${call.path}: ${reason}`, madeProgress, { cause: error });
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A refused dual-stack connection is an AggregateError with an empty message.
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return inner instanceof Error && inner.message ? inner.message : error.name;
}

async function readError(answer: Dispatcher.ResponseData): Promise<PalestraApiError> {
  const text = await answer.body.text();
  let body: { code?: unknown; detail?: unknown; message?: unknown } = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) body = parsed;
  } catch {
    // The response of a proxy: use its text.
  }
  const detail = body.detail ?? body.message ?? (text.slice(0, 500) || 'no detail');
  const retryAfter = answer.headers['retry-after'];
  return new PalestraApiError(
    typeof body.code === 'string' ? body.code : null,
    answer.statusCode,
    typeof detail === 'string' ? detail : JSON.stringify(detail),
    typeof retryAfter === 'string' ? retryAfterMs(retryAfter, Date.now()) : null,
    answer.headers['x-backend-state'] === 'starting',
  );
}
