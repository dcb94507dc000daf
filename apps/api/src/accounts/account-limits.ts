import { Prisma } from '../platform/generated/prisma/client.ts';
import type { Database } from '../platform/database/database.ts';
import { limitError, type Limits } from '../platform/limits.ts';
import { FIRST_ORG } from './owner.ts';

export type Transaction = Parameters<Parameters<Database['prisma']['$transaction']>[0]>[0];

/** A revoked key counts for this long, so that a client cannot create and revoke keys without a bound. */
const KEY_MEMORY_MS = 24 * 3_600_000;

/** The organisation that runs the service may create at least this many: they are its tenants. */
const OPERATOR_ORGANISATIONS = 1_000;

/** Locks the organisation until the transaction ends, so that no other transaction adds to it after the count. */
const lock = (transaction: Transaction, orgId: string) =>
  transaction.$queryRaw`SELECT id FROM organisations WHERE id = ${orgId}::uuid FOR UPDATE`;

/** Throws `limit_reached` when the organisation has the maximum of API keys. */
export async function assertRoomForKey(transaction: Transaction, limits: Limits, orgId: string, now: number): Promise<void> {
  await lock(transaction, orgId);
  const since = new Date(now - KEY_MEMORY_MS);
  const count = await transaction.apiKey.count({
    where: {
      orgId,
      AND: [
        { OR: [{ revokedAt: null }, { revokedAt: { gt: since } }] },
        { OR: [{ expiresAt: null }, { expiresAt: { gt: since } }, { createdAt: { gt: since } }] },
      ],
    },
  });
  if (count >= limits.keys.org) throw limitError('keys', 'org', limits.keys.org);
}

/** Throws `limit_reached` when the organisation has the maximum of members. */
export async function assertRoomForMember(transaction: Transaction, limits: Limits, orgId: string): Promise<void> {
  await lock(transaction, orgId);
  const count = await transaction.membership.count({ where: { orgId } });
  if (count >= limits.members.org) throw limitError('members', 'org', limits.members.org);
}

/** Throws `limit_reached` when the organisation has the maximum of alerts. */
export async function assertRoomForAlert(transaction: Transaction, limits: Limits, orgId: string): Promise<void> {
  await lock(transaction, orgId);
  if ((await transaction.alert.count({ where: { orgId } })) >= limits.alerts.org) throw limitError('alerts', 'org', limits.alerts.org);
}

/** Throws `limit_reached` when the organisation has the maximum of webhooks. */
export async function assertRoomForWebhook(transaction: Transaction, limits: Limits, orgId: string): Promise<void> {
  await lock(transaction, orgId);
  if ((await transaction.webhook.count({ where: { orgId } })) >= limits.webhooks.org)
    throw limitError('webhooks', 'org', limits.webhooks.org);
}

/**
 * Throws `limit_reached` when the organisation's tenant has created the maximum of organisations. A tenant is an organisation that the
 * operator's organisation created, with all organisations created from it, so that new owners in these do not raise the limit.
 */
export async function assertRoomForOrganisation(transaction: Transaction, limits: Limits, orgId: string): Promise<void> {
  await transaction.$queryRaw`SELECT pg_advisory_xact_lock(hashtext('palestra organisations'))::text`;
  const [row] = await transaction.$queryRaw<{ root: string; count: number }[]>(Prisma.sql`
    WITH RECURSIVE above AS (
      SELECT id, name, parent_id FROM organisations WHERE id = ${orgId}::uuid
      UNION ALL SELECT o.id, o.name, o.parent_id FROM organisations AS o JOIN above AS a ON o.id = a.parent_id WHERE o.name <> ${FIRST_ORG}),
    root AS (SELECT a.id, a.name FROM above AS a WHERE NOT EXISTS (SELECT 1 FROM above AS b WHERE b.id = a.parent_id)),
    below AS (
      SELECT id FROM organisations WHERE parent_id = (SELECT id FROM root)
      UNION ALL SELECT o.id FROM organisations AS o JOIN below AS b ON o.parent_id = b.id WHERE (SELECT name FROM root) <> ${FIRST_ORG})
    SELECT (SELECT name FROM root) AS root, (SELECT count(*)::int FROM below) AS count`);
  const most = row!.root === FIRST_ORG ? Math.max(OPERATOR_ORGANISATIONS, limits.organisations.org) : limits.organisations.org;
  if (row!.count >= most) throw limitError('organisations', 'org', most);
}
