import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { isDatabaseAway, isRolledBack } from '../platform/database/database-errors.ts';

/** SQLSTATE classes of what a statement was given: cardinality, data, integrity, limits of the program. */
const OF_DATA = /^(21|22|23|54)/;

/** The object store did not answer; what it does not have, or has damaged, is a fault of that one object. */
export function isStoreAway(error: unknown): boolean {
  if (error instanceof BlobError) return error.kind === 'unavailable' || error.kind === 'full';
  return ['AbortError', 'TimeoutError'].includes((error as Error).name);
}

/** Whether work failed by what it was done with, so that it fails again, and the same work with other things need not. */
export function isOwnFault(error: unknown): boolean {
  if (isDatabaseAway(error) || isRolledBack(error) || isStoreAway(error) || error instanceof PalestraError) return false;
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code !== 'string' || OF_DATA.test(code);
}

/** Does the work with all members together; where one of them makes it fail, with the others all the same. `left` gets that one. */
export async function withoutFaulty<T>(
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
    for (const some of [members.slice(0, half), members.slice(half)]) await withoutFaulty(some, work, left, isTheirs);
  }
}
