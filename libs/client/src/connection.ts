import type { Readable } from 'node:stream';
import { parseJson, stringifyJson, type JsonValue } from '@palestra/protocol';
import { SseParser } from '@palestra/kit/sse';
import { Agent, type Dispatcher, request } from 'undici';
import { ConnectionError, PalestraApiError, ToolFailedError } from './errors.ts';
import { requestRetry, type RetryPolicy, withRetry } from './retry.ts';

export interface ConnectionOptions {
  /** Origin of the API. */
  url: string;
  apiKey?: string;
  /** Origin of the session plane where it is another one. */
  sessionUrl?: string;
  /** Ends every request of this client. */
  signal?: AbortSignal;
  /** An undici dispatcher: proxies, limits of connections, tests. */
  dispatcher?: Dispatcher;
}

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  body?: JsonValue;
  signal?: AbortSignal;
  /** Of one attempt. */
  deadlineMs?: number;
  retry?: RetryPolicy;
}

/** A silent stream is taken for dead after this; servers send a heartbeat every 10 s. */
const STALL_MS = 30_000;
/** A stream that lived this long has seen a heartbeat, so its cut does not count against the retries. */
const PROGRESS_MS = 10_000;
const DEADLINE_MS = 60_000;

/** HTTP to one server: keys, deadlines, retries, event streams with resume. */
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
    // Deadlines are ours, by signal; a prompt may wait half an hour for setup.
    this.#dispatcher = options.dispatcher ?? new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000 });
    this.#signal = options.signal;
  }

  get isOneOrigin(): boolean {
    return this.url === this.#sessionUrl;
  }

  /** The JSON of a 2xx answer. */
  json(call: Call): Promise<JsonValue> {
    return withRetry(() => this.jsonOnce(call), call.retry ?? requestRetry, this.#combine(call.signal));
  }

  /** As `json`, sent once. */
  async jsonOnce(call: Call): Promise<JsonValue> {
    const deadlineMs = call.deadlineMs ?? DEADLINE_MS;
    const signal = this.#combine(call.signal, AbortSignal.timeout(deadlineMs));
    try {
      const answer = await this.#send(call, signal);
      const text = await answer.body.text();
      return text === '' ? null : parseJson(text);
    } catch (error) {
      throw this.#explain(error, call, `no answer within ${deadlineMs / 1000} s`);
    }
  }

  /** The JSON of a 2xx answer to a body of any size, opened anew for every attempt. No deadline but the signal's. */
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
        throw this.#explain(error, call, 'cut');
      } finally {
        body.destroy();
      }
    };
    return withRetry(attempt, call.retry ?? requestRetry, this.#combine(call.signal));
  }

  /** The body of a 2xx answer, to be read to its end. */
  async download(call: Call): Promise<AsyncIterable<Uint8Array>> {
    const answer = await this.#send(call, this.#combine(call.signal)).catch((error: unknown) => {
      throw this.#explain(error, call, 'cut');
    });
    return answer.body;
  }

  /**
   * The text that an event stream carried, or '' . A cut or silent stream is asked for again by its task id, so that the
   * work behind it runs once. Rejects with `ToolFailedError` on the event `error`.
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
      throw this.#explain(error, call, `no sign of life for ${STALL_MS / 1000} s`, Date.now() - startedAt > PROGRESS_MS);
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

  /** The caller's own abort stays what it is; everything else without an answer is a `ConnectionError`. */
  #explain(error: unknown, call: Call, onTimeout: string, madeProgress = false): unknown {
    if (error instanceof PalestraApiError || error instanceof ConnectionError || error instanceof ToolFailedError) return error;
    for (const signal of [call.signal, this.#signal]) if (signal?.aborted) return signal.reason;
    if (error instanceof SyntaxError) return new ConnectionError(`${call.path}: the answer is not JSON`, false, { cause: error });
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
    // A proxy's page: its text is all there is.
  }
  const detail = body.detail ?? body.message ?? (text.slice(0, 500) || 'no detail');
  const retryAfter = answer.headers['retry-after'];
  return new PalestraApiError(
    typeof body.code === 'string' ? body.code : null,
    answer.statusCode,
    typeof detail === 'string' ? detail : JSON.stringify(detail),
    typeof retryAfter === 'string' && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : null,
    answer.headers['x-backend-state'] === 'starting',
  );
}
