import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { isDatabaseUnavailable, isRolledBack } from '../platform/database/database-errors.ts';

/** SQLSTATE classes of errors caused by a statement's input: cardinality, data, integrity, program limits. */
const OF_DATA = /^(21|22|23|54)/;

/** Whether an access to the object store failed, for whatever reason. */
export const isBlobFailure = (error: unknown): boolean =>
  error instanceof BlobError || ['AbortError', 'TimeoutError'].includes((error as Error).name);

/** Whether the object store is unavailable or full. A missing or damaged object is not: it affects that object alone. */
export function isStoreAway(error: unknown): boolean {
  if (error instanceof BlobError) return error.kind === 'unavailable' || error.kind === 'full';
  return isBlobFailure(error);
}

/** Whether the input caused the error: the same input fails again, another input may succeed. */
export function isOwnFault(error: unknown): boolean {
  if (isDatabaseUnavailable(error) || isRolledBack(error) || isStoreAway(error) || error instanceof PalestraError) return false;
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code !== 'string' || OF_DATA.test(code);
}

/** Runs `work` on all members at once. If it fails by their fault, bisects the batch until each faulty member is alone, and calls `left` with it. */
export async function bisectBatch<T>(
  members: readonly T[],
  work: (members: readonly T[]) => Promise<unknown>,
  left: (member: T, error: unknown) => void | Promise<void>,
  isTheirs = isOwnFault,
): Promise<void> {
  try {
    await work(members);
  } catch (error) {
    if (members.length === 0 || !isTheirs(error)) throw error;
    if (members.length === 1) return left(members[0]!, error);
    const half = members.length >> 1;
    for (const some of [members.slice(0, half), members.slice(half)]) await bisectBatch(some, work, left, isTheirs);
  }
}
