import pRetry from 'p-retry';
import { BatchQueueFullError } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { isDatabaseUnavailable, isDiskFull, isRolledBack } from './database-errors.ts';

/** A restart of PostgreSQL takes less than this, and clients do not wait longer for a response. */
const PATIENCE_MS = 20_000;

/**
 * Repeats a repeatable statement while PostgreSQL restarts, and after a deadlock. Throws `database_unavailable` when PostgreSQL stays
 * unavailable or its disk is full (nothing was stored), and any other error at once.
 */
export function retryDatabase<T>(statement: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  const attempt = () =>
    statement().catch((error: unknown) => {
      const isTemporary = error instanceof BatchQueueFullError || isDatabaseUnavailable(error) || isRolledBack(error);
      throw isTemporary ? new PalestraError('database_unavailable', { retryAfterSeconds: 1, cause: error }) : error;
    });
  return pRetry(attempt, {
    retries: 100,
    minTimeout: 50,
    maxTimeout: 1_000,
    maxRetryTime: patienceMs,
    randomize: true,
    shouldRetry: ({ error }) => {
      if (!(error instanceof PalestraError) || error.code !== 'database_unavailable') return false;
      // A full disk is not freed while a request waits. Only callers with more patience retry it.
      return patienceMs > PATIENCE_MS || !isDiskFull(error.cause);
    },
  });
}
