import { isDatabaseUnavailable } from '../platform/database/database-errors.ts';
import { isObjectStoreUnavailable, isStatementFault } from './bisect-batch.ts';

/**
 * Calls `work` for each item until the signal aborts. One that fails keeps no other from it: rejects with the first error at the end, and at once
 * when PostgreSQL or the object store is unavailable.
 */
export async function eachItem<T>(items: Iterable<T>, signal: AbortSignal | undefined, work: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    if (signal?.aborted) break;
    try {
      await work(item);
    } catch (error) {
      if (signal?.aborted || isObjectStoreUnavailable(error)) throw error;
      if (isDatabaseUnavailable(error) && !isStatementFault(error)) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
