import { splitCredentials } from '@palestra/kit';
import { PalestraError, stringifyJson, type JsonValue } from '@palestra/protocol';
import pRetry from 'p-retry';
import type { Agent, Dispatcher } from 'undici';
import { ANSWER_LIMITS, assertParsable, readAnswer, outboundAgent, type OutboundPolicy, unrestricted } from '@palestra/outbound';
import { readJson } from '../wire/server-replies.ts';

export interface HttpAnswer {
  status: number;
  body: Buffer;
  contentType: string;
}

interface HttpRequest {
  method: 'GET' | 'POST';
  path: string;
  body: Buffer | null;
  contentType: string | null;
  /** Bytes. Default: `ANSWER_LIMITS.call`. */
  limitBytes?: number;
}

/** Which failures allow a retry: `idempotent` every failure, `unsent` only those before the request was sent, `never` none. */
export type Repeat = 'idempotent' | 'unsent' | 'never';

/** uvicorn closes idle connections after 5 s by default. We close earlier, so that no request is sent on a closing connection. */
const KEEP_ALIVE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Answers of a proxy whose server is away. */
export const TRANSIENT = new Set([502, 503, 504]);
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

export function errorCode(error: unknown): string {
  const found = (error as { code?: unknown } | null)?.code ?? (error as { cause?: { code?: unknown } } | null)?.cause?.code;
  return typeof found === 'string' ? found : '';
}

/** The connection failed; `sent` says whether the server may have seen the request. */
export class ConnectionFailed extends Error {
  readonly sent: boolean;
  constructor(cause: unknown) {
    // Only the error code: the message contains the server's address, which tenants must not see.
    super(errorCode(cause) || 'connection failed', { cause });
    this.name = 'ConnectionFailed';
    this.sent = !NOT_SENT.has(errorCode(cause));
  }
}

export function unreachable(error: Error): PalestraError {
  return new PalestraError('backend_unreachable', {
    detail: `The OpenEnv server could not be reached (${error.message}).`,
    retryAfterSeconds: 2,
    cause: error,
  });
}

/** Runs shared work with its own deadline, so that one caller cannot abort it for the others. Throws `backend_timeout`. */
export async function withDeadline<T>(limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = AbortSignal.timeout(limitMs);
  try {
    return await work(deadline);
  } catch (error) {
    throw deadline.aborted && error === deadline.reason ? new PalestraError('backend_timeout', { cause: error }) : error;
  }
}

/** Retry policy of sockets and requests for transient failures. */
export const RETRY = { retries: 2, minTimeout: 300, maxTimeout: 2_000, maxRetryTime: 10_000, randomize: true } as const;

class TransientAnswer extends Error {
  constructor(readonly answer: HttpAnswer) {
    super(`HTTP ${answer.status}`);
  }
}

/** No timeouts: the caller's signal is the deadline, because environments can be slow. */
const newAgent = (outbound: OutboundPolicy) =>
  outboundAgent(outbound, CONNECT_TIMEOUT_MS, {
    connections: 256,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

/** HTTP requests to an OpenEnv server. */
export class OpenEnvConnection {
  /** URL of the socket `/ws`. */
  readonly socketUrl: string;
  readonly headers: Record<string, string>;
  readonly #base: URL;
  /** Agent of requests that can be repeated. */
  readonly #reads: Agent;
  /** Agent of all other requests. uvicorn closes the connection after a failed request, so these never reuse a connection. */
  readonly #writes: Agent;

  /**
   * `url`: the base URL. Its path is a prefix; a key in the user information is sent as `Authorization: Basic`. `outbound`: which addresses
   * are allowed.
   */
  constructor(
    url: string,
    readonly outbound: OutboundPolicy = unrestricted,
  ) {
    const { url: bare, headers } = splitCredentials(url);
    const base = new URL(bare.endsWith('/') ? bare : `${bare}/`);
    this.headers = headers;
    base.search = '';
    base.hash = '';
    this.#base = base;
    const socket = new URL('ws', base);
    socket.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
    this.socketUrl = socket.href;
    [this.#reads, this.#writes] = [newAgent(outbound), newAgent(outbound)];
  }

  /** `limitBytes`: one of `ANSWER_LIMITS`. */
  get(path: string, signal: AbortSignal, limitBytes: number = ANSWER_LIMITS.metadata): Promise<HttpAnswer> {
    return this.request({ method: 'GET', path, body: null, contentType: null, limitBytes }, 'idempotent', signal);
  }

  post(path: string, body: JsonValue, repeat: Repeat, signal: AbortSignal): Promise<HttpAnswer> {
    const request = { method: 'POST', path, body: Buffer.from(stringifyJson(body)), contentType: 'application/json' } as const;
    return this.request(request, repeat, signal);
  }

  /** Sends one JSON-RPC request to `/mcp` and returns the response. Throws `backend_invalid` if the status is not 200. */
  async rpc(method: string, params: JsonValue, repeat: Repeat, signal: AbortSignal): Promise<JsonValue> {
    const answer = await this.post('/mcp', { jsonrpc: '2.0', id: 1, method, params }, repeat, signal);
    if (answer.status !== 200) {
      throw new PalestraError('backend_invalid', { detail: `The OpenEnv server answered ${answer.status} on /mcp.` });
    }
    return readJson(answer.body.toString('utf8'), 'a JSON-RPC response');
  }

  /**
   * Returns the response whatever its status. Throws `backend_unreachable` if the server cannot have seen the request, else
   * `ConnectionFailed`.
   */
  async request(request: HttpRequest, repeat: Repeat, signal: AbortSignal): Promise<HttpAnswer> {
    const attempt = async (): Promise<HttpAnswer> => {
      const answer = await this.#send(request, signal);
      if (repeat === 'idempotent' && TRANSIENT.has(answer.status)) throw new TransientAnswer(answer);
      return answer;
    };
    try {
      if (repeat === 'never') return await attempt();
      return await pRetry(attempt, {
        ...RETRY,
        signal,
        shouldRetry: ({ error }) =>
          error instanceof TransientAnswer || (error instanceof ConnectionFailed && (repeat === 'idempotent' || !error.sent)),
      });
    } catch (error) {
      if (error instanceof TransientAnswer) return error.answer;
      if (error instanceof ConnectionFailed && (!error.sent || repeat === 'idempotent')) throw unreachable(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#reads.destroy(), this.#writes.destroy()]);
  }

  async #send({ method, path, body, contentType, limitBytes }: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const url = new URL(path.replace(/^\/+/, ''), this.#base);
    try {
      const response: Dispatcher.ResponseData = await (method === 'GET' ? this.#reads : this.#writes).request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: { ...this.headers, ...(contentType === null ? {} : { 'content-type': contentType }) },
        body,
        signal,
        // Closes the connection after the response.
        reset: method === 'POST',
      });
      const type = response.headers['content-type'];
      const bytes = await readAnswer(response.body, limitBytes ?? ANSWER_LIMITS.call);
      assertParsable(bytes);
      return { status: response.statusCode, body: bytes, contentType: typeof type === 'string' ? type : 'application/octet-stream' };
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof PalestraError ? error : new ConnectionFailed(error);
    }
  }
}
