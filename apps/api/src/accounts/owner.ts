import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import type { Database } from '../platform/database/database.ts';

/** The memberships, as a transaction or another query sees them. */
export interface Memberships {
  prisma: Pick<Database['prisma'], 'membership'>;
}

/** Whether the caller is an owner of its organisation now. */
export async function isOwner({ prisma }: Memberships, { orgId, userId }: Caller): Promise<boolean> {
  const membership = await prisma.membership.findUnique({ where: { orgId_userId: { orgId, userId } } });
  return membership?.role === 'owner';
}

/** The first organisation of an installation: the one that runs it. */
export const FIRST_ORG = 'local';

/** Throws `forbidden` for a caller of another organisation, and for one without a key. `what`: the beginning of the message. */
export function assertOperatorKey(caller: Caller, what: string): void {
  if (caller.orgName !== FIRST_ORG || caller.anonymous)
    throw new PalestraError('forbidden', { detail: `${what} for keys of the organisation "${FIRST_ORG}", which runs this server.` });
}

/** Throws `forbidden` for callers of another organisation and `owner_required` for other members. */
export async function assertOperator(database: Database, caller: Caller): Promise<void> {
  assertOperatorKey(caller, 'This is');
  if (!(await isOwner(database, caller))) throw new PalestraError('owner_required');
}
