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
  /** The longest answer that is read; that of a call unless set. */
  limitBytes?: number;
}

/** How a request may be repeated: `idempotent` after any failure, `unsent` only when the server cannot have seen it, `never`. */
export type Repeat = 'idempotent' | 'unsent' | 'never';

/** uvicorn closes idle connections after 5 s by default; ours must go first, or a request dies on the race. */
const KEEP_ALIVE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 5_000;
const TRANSIENT = new Set([502, 503, 504]);
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

export function errorCode(error: unknown): string {
  const found = (error as { code?: unknown } | null)?.code ?? (error as { cause?: { code?: unknown } } | null)?.cause?.code;
  return typeof found === 'string' ? found : '';
}

/** The connection failed; `sent` says whether the server may have seen the request. */
export class ConnectionFailed extends Error {
  readonly sent: boolean;
  constructor(cause: unknown) {
    // The code alone: the message of a socket error holds the server's address, which is not for every tenant.
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

/** Work that many wait for has a deadline of its own, so that no caller can abort it for the others. Throws `backend_timeout`. */
export async function withDeadline<T>(limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = AbortSignal.timeout(limitMs);
  try {
    return await work(deadline);
  } catch (error) {
    throw deadline.aborted && error === deadline.reason ? new PalestraError('backend_timeout', { cause: error }) : error;
  }
}

/** So failures that may pass are waited out, by sockets as by requests. */
export const RETRY = { retries: 2, minTimeout: 300, maxTimeout: 2_000, maxRetryTime: 10_000, randomize: true } as const;

class TransientAnswer extends Error {
  constructor(readonly answer: HttpAnswer) {
    super(`HTTP ${answer.status}`);
  }
}

/** The caller's signal is the deadline of a slow environment, not the agent. */
const newAgent = (outbound: OutboundPolicy) =>
  outboundAgent(outbound, CONNECT_TIMEOUT_MS, {
    connections: 256,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

/** Where an OpenEnv server is, and plain requests to it. */
export class OpenEnvConnection {
  /** Of the socket `/ws`. */
  readonly socketUrl: string;
  readonly headers: Record<string, string>;
  readonly #base: URL;
  /** For what may be asked again. */
  readonly #reads: Agent;
  /** For what may not: uvicorn closes the connection after a failed request, so such a one never goes over a used connection. */
  readonly #writes: Agent;

  /** `url`: its base; a path is kept as prefix, a key as userinfo is sent as `Authorization: Basic`. `outbound`: where its addresses may be. */
  constructor(
    url: string,
    readonly outbound: OutboundPolicy = unrestricted,
  ) {
    const base = new URL(url.endsWith('/') ? url : `${url}/`);
    const { username, password } = base;
    const userinfo = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    this.headers = username === '' && password === '' ? {} : { authorization: `Basic ${Buffer.from(userinfo).toString('base64')}` };
    base.username = '';
    base.password = '';
    base.search = '';
    base.hash = '';
    this.#base = base;
    const socket = new URL('ws', base);
    socket.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
    this.socketUrl = socket.href;
    [this.#reads, this.#writes] = [newAgent(outbound), newAgent(outbound)];
  }

  /** `limitBytes`: of `ANSWER_LIMITS`. */
  get(path: string, signal: AbortSignal, limitBytes: number = ANSWER_LIMITS.metadata): Promise<HttpAnswer> {
    return this.request({ method: 'GET', path, body: null, contentType: null, limitBytes }, 'idempotent', signal);
  }

  post(path: string, body: JsonValue, repeat: Repeat, signal: AbortSignal): Promise<HttpAnswer> {
    const request = { method: 'POST', path, body: Buffer.from(stringifyJson(body)), contentType: 'application/json' } as const;
    return this.request(request, repeat, signal);
  }

  /** One JSON-RPC request to `/mcp`; its response whatever it says. Throws `backend_invalid` on another status than 200. */
  async rpc(method: string, params: JsonValue, repeat: Repeat, signal: AbortSignal): Promise<JsonValue> {
    const answer = await this.post('/mcp', { jsonrpc: '2.0', id: 1, method, params }, repeat, signal);
    if (answer.status !== 200) {
      throw new PalestraError('backend_invalid', { detail: `The OpenEnv server answered ${answer.status} on /mcp.` });
    }
    return readJson(answer.body.toString('utf8'), 'a JSON-RPC response');
  }

  /** The answer whatever its status. Throws `backend_unreachable` when the server cannot have seen it, `ConnectionFailed` else. */
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
        // Closed after the answer.
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
