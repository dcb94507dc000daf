import type { Caller } from '@palestra/session';
import type { Database } from '../platform/database/database.ts';

/** Whether the caller is an owner of its organisation, by its role now. */
export async function isOwner({ prisma }: Database, { orgId, userId }: Caller): Promise<boolean> {
  const membership = await prisma.membership.findUnique({ where: { orgId_userId: { orgId, userId } } });
  return membership?.role === 'owner';
}
