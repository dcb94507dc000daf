import { type JsonObject, stringifyJson } from '@palestra/protocol';
import pRetry from 'p-retry';
import { BodyTooLargeError, readBoundedText } from './read-bounded.ts';
import { systemClock } from './clock.ts';
import { retryAfterMs } from './retry-after.ts';

export interface ChatRequest {
  /** Base URL of an OpenAI-compatible service, such as `http://127.0.0.1:8000/v1`, as `chatUrl` returns it. */
  url: string;
  apiKey?: string | undefined;
  body: object;
  /** Deadline of this request. */
  timeoutMs: number;
  signal: AbortSignal;
  /** A longer reply is an error. */
  maxBytes?: number;
}

/** The service refused the request, or its reply cannot be used. */
export class ChatError extends Error {
  constructor(
    message: string,
    /** Null: it answered with a reply that cannot be used. */
    readonly status: number | null,
    /** The same request may succeed later. */
    readonly retryable: boolean,
    /** The body of an error without the key; empty for a long one. It is untrusted text. */
    readonly detail = '',
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

const RETRYABLE = new Set([408, 429, 500, 502, 503, 504]);
const MAX_RETRY_AFTER_MS = 30_000;
const MAX_REPLY_BYTES = 1_000_000;
const MAX_ERROR_BYTES = 10_000;

/** The address of chat completions below a base URL. Throws `TypeError` for a URL with credentials or without http(s). */
export function chatUrl(baseUrl: string): string {
  const url = `${baseUrl.replace(/\/+$/, '')}/chat/completions`;
  const { protocol, username, password } = new URL(url);
  if (!/^https?:$/.test(protocol)) throw new TypeError('baseUrl must begin with http:// or https://.');
  if (username !== '' || password !== '') throw new TypeError('baseUrl must not contain credentials. Pass the key as apiKey.');
  return url;
}

/** Sends one request and returns the text of its reply. Throws `ChatError`, or what `fetch` throws. */
export async function postChat({ url, apiKey, body, timeoutMs, signal, maxBytes = MAX_REPLY_BYTES }: ChatRequest): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }) },
    body: stringifyJson(body as JsonObject),
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  // A service may repeat the key, and callers store and print what it says.
  const withoutKey = (text: string) => (apiKey ? text.replaceAll(apiKey, '[API key]') : text);
  if (!answer.ok) {
    const { status } = answer;
    const text = await readBoundedText(answer.body, MAX_ERROR_BYTES).catch(() => '');
    const after = retryAfterMs(answer.headers.get('retry-after'), Date.now());
    throw new ChatError(`status ${status}`, status, RETRYABLE.has(status), withoutKey(text), after);
  }
  try {
    return withoutKey(await readBoundedText(answer.body, maxBytes));
  } catch (error) {
    if (error instanceof BodyTooLargeError) throw new ChatError(`the reply is longer than ${maxBytes / 1_000_000} MB`, null, false);
    throw error;
  }
}

export interface ChatRetries {
  /** Repeats after 408, 429, 5xx, a broken connection or another error of `attempt`. */
  retries: number;
  /** First wait between requests. It doubles with each one, with jitter. A longer `Retry-After` counts, up to 30 s. */
  minDelayMs: number;
  signal: AbortSignal;
}

/** Repeats `attempt` unless its error is a `ChatError` that is not retryable. */
export function retryChat<T>(attempt: () => Promise<T>, { retries, minDelayMs, signal }: ChatRetries): Promise<T> {
  return pRetry(attempt, {
    retries,
    minTimeout: minDelayMs,
    maxTimeout: MAX_RETRY_AFTER_MS,
    randomize: true,
    signal,
    shouldRetry: ({ error }) => !(error instanceof ChatError) || error.retryable,
    onFailedAttempt: async ({ error, retriesLeft }) => {
      const delayMs = error instanceof ChatError && error.retryable && retriesLeft > 0 ? (error.retryAfterMs ?? 0) : 0;
      if (delayMs > 0) await systemClock.sleep(Math.min(delayMs, MAX_RETRY_AFTER_MS), signal);
    },
  });
}
