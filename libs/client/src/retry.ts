import { systemClock } from '@palestra/kit';
import pRetry, { type RetryContext } from 'p-retry';
import { ConnectionError, PalestraApiError } from './errors.ts';

/** How often and for how long the same request is sent again. */
export interface RetryPolicy {
  retries: number;
  /** First wait; doubles each time, with jitter, up to `maxDelayMs`. */
  minDelayMs: number;
  maxDelayMs: number;
}

export const requestRetry: RetryPolicy = { retries: 5, minDelayMs: 500, maxDelayMs: 10_000 };
/** Uploads ride out a restart of the server: together about two minutes. */
export const uploadRetry: RetryPolicy = { retries: 15, minDelayMs: 500, maxDelayMs: 10_000 };
export const noRetry: RetryPolicy = { retries: 0, minDelayMs: 0, maxDelayMs: 0 };

/** A server that says it is starting is waited for this long (the SDK's OPENREWARD_STARTING_RIDE_OUT_S). */
const STARTING_RIDE_OUT_MS = 600_000;
const MAX_RETRY_AFTER_MS = 10_000;
const RETRYABLE_STATUS = new Set([429, 502, 503, 504]);

export function isRetryable(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof PalestraApiError && RETRYABLE_STATUS.has(error.status));
}

/**
 * Sends `attempt` again while its errors may pass. Only for requests that may run twice, or that prove they ran once (a task
 * id, an event id). A 500 is an answer, not an outage: it is never repeated.
 */
export function withRetry<T>(attempt: (number: number) => Promise<T>, policy: RetryPolicy, signal?: AbortSignal): Promise<T> {
  const startedAt = systemClock.now();
  const isStarting = ({ error }: RetryContext) =>
    error instanceof PalestraApiError && error.backendStarting && systemClock.now() - startedAt < STARTING_RIDE_OUT_MS;
  return pRetry(attempt, {
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
