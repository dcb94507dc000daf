import { abortable, type Clock, SingleFlight, systemClock, splitCredentials } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import pRetry from 'p-retry';
import type { Agent, Dispatcher } from 'undici';
import { ANSWER_LIMITS, assertParsable, readAnswer, textOf, outboundAgent, type OutboundPolicy, unrestricted } from '@palestra/outbound';
import { isStarting, relayedError, retryAfterSeconds, type UpstreamAnswer } from '../wire/server-errors.ts';
import { LivenessMonitor } from './liveness-monitor.ts';

export interface OrsConnectionOptions {
  /** Base URL; its path is a prefix. */
  url: string;
  /** Sent as `X-Deployment`: `owner/name`. */
  deployment?: string;
  /** Sent as `X-API-Key`, for servers that want one. */
  apiKey?: string;
  /** How long "503 starting" is waited for. */
  startingLimitMs?: number;
  /** A server that sends nothing for this long is considered dead. Default: {@link SILENCE_MS}. Read again each time. */
  silenceMs?: () => number;
  clock?: Clock;
  /** Which addresses are allowed; default: all. */
  outbound?: OutboundPolicy;
  /** Default: {@link CONNECT_TIMEOUT_MS}. */
  connectTimeoutMs?: number;
}

export interface OrsRequest {
  method: 'GET' | 'POST';
  /** Path below the base URL. */
  path: string;
  sid?: string;
  /** JSON text. */
  body?: string;
  headers?: Record<string, string>;
  /** Bytes. Default: `ANSWER_LIMITS.metadata`. */
  limitBytes?: number;
}

type Limits = Partial<Record<'headersTimeout' | 'bodyTimeout', number>>;

/** Whether a request may be repeated when the server may have run it. */
export type RepeatPolicy = 'idempotent' | 'once';

const TRANSIENT = new Set([429, 502, 503, 504]);
const STARTING_LIMIT_MS = 600_000;
/** uvicorn closes idle connections after 5 s by default. We close earlier, so that no request is sent on a closing connection. */
const KEEP_ALIVE_MS = 4_000;
/** Clients get a response within a minute, also when the server is dead. */
export const SILENCE_MS = 50_000;
/** Share of the silence limit after which a silent stream is resumed. Servers send a heartbeat every 10 s to 15 s. */
export const STREAM_SILENCE = 0.6;
const CONNECT_TIMEOUT_MS = 5_000;
/** Share of the silence limit. Skip the liveness probe for requests that cannot be repeated if the server responded this recently. */
const RECENT = 0.2;
const MAX_REDIRECTS = 3;
const FIRST_PAUSE_MS = 250;

/** Errors before the request was sent. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

function errorCode(error: unknown): string {
  const found = (error as { code?: unknown } | null)?.code ?? (error as { cause?: { code?: unknown } } | null)?.cause?.code;
  return typeof found === 'string' ? found : '';
}

/** The connection failed; `sent` says whether the server may have seen the request. */
export class OrsConnectionError extends Error {
  readonly sent: boolean;
  constructor(cause: unknown) {
    // Only the error code: the message contains the server's address, which tenants must not see.
    super(errorCode(cause) || 'connection failed', { cause });
    this.name = 'OrsConnectionError';
    this.sent = !NOT_SENT.has(errorCode(cause));
  }
}

/** The server has the request and has been silent since, to all requests. */
class SilentServerError extends OrsConnectionError {
  constructor(silenceMs: number) {
    super(Object.assign(new Error(`no sign of life for ${silenceMs / 1_000} s`), { code: 'SILENT' }));
  }
}

/** A transient error status. Only used inside the retry loops. */
class TransientAnswer extends Error {
  constructor(readonly answer: UpstreamAnswer) {
    super(`HTTP ${answer.status}`);
  }
}

/** Requests and event streams to one environment server. Waits while the server is starting. */
export class OrsConnection {
  readonly #agent: Agent;
  readonly #base: URL;
  readonly #headers: Record<string, string>;
  readonly #startingLimitMs: number;
  readonly #liveness: LivenessMonitor;
  readonly #probing = new SingleFlight<UpstreamAnswer>();
  readonly #silenceMs: () => number;
  readonly clock: Clock;

  constructor(options: OrsConnectionOptions) {
    const { url, headers } = splitCredentials(options.url);
    this.#base = new URL(url.endsWith('/') ? url : `${url}/`);
    this.clock = options.clock ?? systemClock;
    this.#startingLimitMs = options.startingLimitMs ?? STARTING_LIMIT_MS;
    this.#silenceMs = options.silenceMs ?? (() => SILENCE_MS);
    this.#liveness = new LivenessMonitor({
      clock: this.clock,
      silenceMs: this.#silenceMs,
      probe: async (signal) => (await this.#send({ method: 'GET', path: '/health' }, signal, {})).body.dump(),
      silent: () => new SilentServerError(this.silenceMs),
    });
    this.#headers = {
      ...headers,
      ...(options.deployment ? { 'x-deployment': options.deployment } : {}),
      ...(options.apiKey ? { 'x-api-key': options.apiKey } : {}),
    };
    // No timeouts: a prompt waits for setup. The liveness monitor detects a dead server.
    this.#agent = outboundAgent(options.outbound ?? unrestricted, options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS, {
      connections: 4_096,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  get silenceMs(): number {
    return this.#silenceMs();
  }

  /** Returns the body of a 200. Throws the server's error as `PalestraError`, or `backend_unreachable`. */
  async text(request: OrsRequest, policy: RepeatPolicy, signal: AbortSignal): Promise<string> {
    const answer = await this.answer(request, policy, signal);
    if (answer.status !== 200) throw relayedError(answer);
    return answer.text;
  }

  /**
   * Returns the final response whatever its status, after the server has started. Throws `backend_unreachable` without a response,
   * `backend_timeout` if the server has the request but is silent.
   */
  async answer(request: OrsRequest, policy: RepeatPolicy, signal: AbortSignal): Promise<UpstreamAnswer> {
    try {
      return await this.#retried(policy, signal, async () => {
        const answer = await this.#ready(signal, () =>
          this.#liveness.watch(signal, async (watched) => {
            const response = await this.#send(request, watched, {});
            return { status: response.statusCode, headers: response.headers, text: await this.#read(response, request, watched) };
          }),
        );
        if (TRANSIENT.has(answer.status) && policy === 'idempotent') throw new TransientAnswer(answer);
        return answer;
      });
    } catch (error) {
      if (error instanceof TransientAnswer) return error.answer;
      throw this.#unreachable(error);
    }
  }

  /**
   * Probes a server that has not responded recently, before a request that cannot be repeated. Throws `backend_unreachable`: nothing ran.
   */
  async ensureAlive(signal: AbortSignal): Promise<void> {
    if (this.#liveness.silentForMs() < RECENT * this.silenceMs) return;
    // Shared by all callers, so none of them can abort it.
    const never = new AbortController().signal;
    try {
      await abortable(
        this.#probing.do('health', () => this.answer({ method: 'GET', path: '/health' }, 'idempotent', never)),
        signal,
      );
    } catch (error) {
      if (!(error instanceof PalestraError) || error.code !== 'backend_timeout') throw error;
      throw new PalestraError('backend_unreachable', {
        detail: `The environment server has shown no sign of life for ${this.silenceMs / 1_000} s; nothing was run.`,
        retryAfterSeconds: 2,
        cause: error,
      });
    }
  }

  /**
   * Opens an event stream, after the server has started. Resolves with the body of a 200, otherwise with the server's error response, after
   * which nothing ran. Repeats nothing: throws `OrsConnectionError` if the connection fails, if there are no headers within `headMs`, or if
   * the stream is silent for too long.
   */
  async stream(request: OrsRequest, headMs: number, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | UpstreamAnswer> {
    const deadline = this.clock.now() + this.#startingLimitMs;
    for (;;) {
      const response = await this.#send(request, signal, { headersTimeout: headMs, bodyTimeout: STREAM_SILENCE * this.silenceMs });
      if (response.statusCode === 200) return this.#pieces(response, signal);
      const answer = { status: response.statusCode, headers: response.headers, text: await this.#read(response, request, signal) };
      if (!isStarting(answer) || this.clock.now() >= deadline) return answer;
      await this.clock.sleep(pauseMs(answer), signal);
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  /** Repeats a request while the server answers that it is starting. */
  async #ready(signal: AbortSignal, send: () => Promise<UpstreamAnswer>): Promise<UpstreamAnswer> {
    const deadline = this.clock.now() + this.#startingLimitMs;
    for (;;) {
      const answer = await send();
      if (!isStarting(answer) || this.clock.now() >= deadline) return answer;
      await this.clock.sleep(pauseMs(answer), signal);
    }
  }

  async #retried<T>(policy: RepeatPolicy, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    const mayRepeat = (error: unknown) =>
      error instanceof TransientAnswer ||
      (error instanceof OrsConnectionError && !(error instanceof SilentServerError) && (policy === 'idempotent' || !error.sent));
    try {
      // Most requests succeed at once, and a retry loop costs as much as sending them.
      return await run();
    } catch (error) {
      if (!mayRepeat(error)) throw error;
    }
    await this.clock.sleep(FIRST_PAUSE_MS * (1 + Math.random()), signal);
    return pRetry(run, {
      retries: 2,
      minTimeout: 2 * FIRST_PAUSE_MS,
      maxTimeout: 2_000,
      maxRetryTime: 15_000,
      randomize: true,
      signal,
      shouldRetry: ({ error }) => mayRepeat(error),
    });
  }

  async #send(request: OrsRequest, signal: AbortSignal, limits: Limits): Promise<Dispatcher.ResponseData> {
    let url = new URL(request.path.replace(/^\/+/, ''), this.#base);
    for (let redirects = 0; ; redirects += 1) {
      const response = await this.#sendOnce(url, request, signal, limits);
      this.#liveness.recordSign();
      const location = response.headers['location'];
      if ((response.statusCode !== 307 && response.statusCode !== 308) || typeof location !== 'string' || redirects === MAX_REDIRECTS) {
        return response;
      }
      await response.body.dump();
      const next = URL.canParse(location, url.href) ? new URL(location, url) : null;
      if (next?.origin !== url.origin) {
        // Session ids and secrets are only sent to the configured server.
        throw new PalestraError('backend_invalid', {
          detail: 'The environment server redirects to another origin, which is not followed. Register the address that it redirects to.',
        });
      }
      url = next;
    }
  }

  async #sendOnce(url: URL, request: OrsRequest, signal: AbortSignal, limits: Limits): Promise<Dispatcher.ResponseData> {
    try {
      return await this.#agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: request.method,
        headers: {
          ...this.#headers,
          ...(request.sid === undefined ? {} : { 'x-session-id': request.sid }),
          ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...request.headers,
        },
        body: request.body ?? null,
        signal,
        ...limits,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error);
    }
  }

  async #read(response: Dispatcher.ResponseData, request: OrsRequest, signal: AbortSignal): Promise<string> {
    try {
      const bytes = await readAnswer(response.body, request.limitBytes ?? ANSWER_LIMITS.metadata);
      assertParsable(bytes);
      return textOf(bytes);
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error);
    }
  }

  async *#pieces(response: Dispatcher.ResponseData, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of response.body as AsyncIterable<Uint8Array>) {
        this.#liveness.recordSign();
        yield piece;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw new OrsConnectionError(error);
    }
  }

  #unreachable(error: unknown): unknown {
    if (error instanceof SilentServerError) {
      return new PalestraError('backend_timeout', {
        detail: `The environment server has shown no sign of life for ${this.silenceMs / 1_000} s.`,
        retryAfterSeconds: 2,
        cause: error,
      });
    }
    if (!(error instanceof OrsConnectionError)) return error;
    return new PalestraError('backend_unreachable', {
      detail: `The environment server could not be reached (${error.message}).`,
      retryAfterSeconds: 2,
      cause: error,
    });
  }
}

/** Refused addresses and too large responses are not connection failures. */
const failureOf = (error: unknown): Error => (error instanceof PalestraError ? error : new OrsConnectionError(error));

function pauseMs(answer: UpstreamAnswer): number {
  return Math.min(retryAfterSeconds(answer) ?? 2, 10) * 1_000;
}
