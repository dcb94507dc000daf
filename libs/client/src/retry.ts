import { systemClock } from '@palestra/kit';
import pRetry, { type RetryContext } from 'p-retry';
import { ClientError, ConnectionError, PalestraApiError } from './errors.ts';

/** How often a request is retried, and how long to wait. */
export interface RetryPolicy {
  retries: number;
  /** The first wait. It doubles each time, with jitter, up to `maxDelayMs`. */
  minDelayMs: number;
  maxDelayMs: number;
}

export const requestRetry: RetryPolicy = { retries: 5, minDelayMs: 500, maxDelayMs: 10_000 };
/** Uploads and followed logs retry for about two minutes, which covers a restart of the server. */
export const uploadRetry: RetryPolicy = { retries: 15, minDelayMs: 500, maxDelayMs: 10_000 };
/** An abandoned session holds its slot until it expires, but its client does not wait long to end it. */
export const closeRetry: RetryPolicy = { retries: 2, minDelayMs: 200, maxDelayMs: 1_000 };
export const noRetry: RetryPolicy = { retries: 0, minDelayMs: 0, maxDelayMs: 0 };

/** How long to wait for a server that reports that it is starting, like OPENREWARD_STARTING_RIDE_OUT_S of the SDK. */
const MAX_STARTING_MS = 600_000;
const MAX_RETRY_AFTER_MS = 10_000;

const isRetryable = (error: unknown): boolean => error instanceof ClientError && error.retryable;

/** Whether the request may have run although it failed: no response arrived, or a proxy answered in the place of the server. */
export const mayHaveRun = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof PalestraApiError && error.retryable && error.code === null);

/**
 * Retries `attempt` after transient errors. Only for idempotent requests, or requests with an id that makes a repeat safe (task id,
 * event id). A 500 is never retried.
 */
export async function withRetry<T>(attempt: () => Promise<T>, policy: RetryPolicy, signal?: AbortSignal): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (!isRetryable(error) || policy.retries === 0) throw error;
    return retryAfter(error, attempt, policy, signal);
  }
}

/** `first`: the error of the first attempt. */
function retryAfter<T>(first: unknown, attempt: () => Promise<T>, policy: RetryPolicy, signal?: AbortSignal): Promise<T> {
  const startedAt = systemClock.now();
  const isStarting = ({ error }: RetryContext) =>
    error instanceof PalestraApiError && error.backendStarting && systemClock.now() - startedAt < MAX_STARTING_MS;
  return pRetry((number) => (number === 1 ? Promise.reject(first) : attempt()), {
    retries: policy.retries,
    minTimeout: policy.minDelayMs,
    maxTimeout: policy.maxDelayMs,
    randomize: true,
    signal,
    shouldRetry: ({ error }) => isRetryable(error),
    shouldConsumeRetry: (context) => !isStarting(context) && !(context.error instanceof ConnectionError && context.error.madeProgress),
    onFailedAttempt: async (context) => {
      const { error, retriesLeft } = context;
      if (retriesLeft === 0 || !(error instanceof PalestraApiError) || !isRetryable(error)) return;
      const delayMs = error.retryAfterMs ?? (isStarting(context) ? 1_000 : 0);
      if (delayMs > 0) await systemClock.sleep(Math.min(delayMs, MAX_RETRY_AFTER_MS), signal);
    },
  });
}
