import pRetry from 'p-retry';
import { BatchQueueFullError } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { isDatabaseUnavailable, isDiskFull, isRolledBack } from './database-errors.ts';

/** A PostgreSQL that restarts is back within this; a client of a held request waits no longer either. */
const PATIENCE_MS = 20_000;

/**
 * Runs a statement that may be repeated, through a restart of PostgreSQL, or after a deadlock. Throws `database_unavailable` when it stays away, or its disk is full (nothing was
 * stored), and anything else at once.
 */
export function retryDatabase<T>(statement: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  const attempt = () =>
    statement().catch((error: unknown) => {
      const away = error instanceof BatchQueueFullError || isDatabaseUnavailable(error) || isRolledBack(error);
      throw away ? new PalestraError('database_unavailable', { retryAfterSeconds: 1, cause: error }) : error;
    });
  return pRetry(attempt, {
    retries: 100,
    minTimeout: 50,
    maxTimeout: 1_000,
    maxRetryTime: patienceMs,
    randomize: true,
    shouldRetry: ({ error }) => {
      if (!(error instanceof PalestraError) || error.code !== 'database_unavailable') return false;
      // Nobody frees a full disk while a request is held. What is kept for longer waits.
      return patienceMs > PATIENCE_MS || !isDiskFull(error.cause);
    },
  });
}
