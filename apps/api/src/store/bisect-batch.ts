import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { isDatabaseUnavailable, isRolledBack } from '../platform/database/database-errors.ts';

/** SQLSTATE classes of errors caused by a statement's input: cardinality, data, integrity, program limits. */
const INPUT_ERRORS = /^(21|22|23|54)/;

/** Whether an access to the object store failed, for whatever reason. */
export const isBlobFailure = (error: unknown): boolean =>
  error instanceof BlobError || ['AbortError', 'TimeoutError'].includes((error as Error).name);

/** Whether the object store is unavailable or full. A missing or damaged object is not: it affects that object alone. */
export function isObjectStoreUnavailable(error: unknown): boolean {
  if (error instanceof BlobError) return error.kind === 'unavailable' || error.kind === 'full';
  return isBlobFailure(error);
}

/** Whether the input caused the error: the same input fails again, another input may succeed. */
export function isInputFault(error: unknown): boolean {
  if (isDatabaseUnavailable(error) || isRolledBack(error) || isObjectStoreUnavailable(error) || error instanceof PalestraError)
    return false;
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code !== 'string' || INPUT_ERRORS.test(code);
}

/** SQLSTATEs of a statement that took too long, or met damaged or unexpected rows, while PostgreSQL serves others. */
const STATEMENT_ERRORS = /^(57014|XX00[0-2])$/;

/** Whether a statement with these items failed, and others may succeed. */
export function isStatementFault(error: unknown): boolean {
  const { code } = ((error instanceof PalestraError ? error.cause : error) ?? {}) as { code?: unknown };
  return typeof code === 'string' && STATEMENT_ERRORS.test(code);
}

/**
 * Whether background work may leave its items one by one: they caused the error, or a statement with them timed out or met damaged rows.
 * An upload must not use it: a timeout says nothing about its events.
 */
export function isItemFault(error: unknown): boolean {
  const cause: unknown = error instanceof PalestraError ? error.cause : error;
  return cause !== undefined && (isInputFault(cause) || isStatementFault(cause));
}

/**
 * Runs `work` on all members at once. If their fault makes it fail, bisects the batch until each faulty member is alone, and passes it to
 * `onFaulty`.
 */
export async function bisectBatch<T>(
  members: readonly T[],
  work: (members: readonly T[]) => Promise<unknown>,
  onFaulty: (member: T, error: unknown) => void | Promise<void>,
  isFault = isInputFault,
): Promise<void> {
  try {
    await work(members);
  } catch (error) {
    if (members.length === 0 || !isFault(error)) throw error;
    if (members.length === 1) return onFaulty(members[0]!, error);
    const half = members.length >> 1;
    for (const part of [members.slice(0, half), members.slice(half)]) await bisectBatch(part, work, onFaulty, isFault);
  }
}
