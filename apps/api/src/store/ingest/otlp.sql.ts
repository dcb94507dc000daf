import type pg from 'pg';
import type { StoredMessages } from '@palestra/rollouts/import';
import { inTransaction } from '../../platform/database/transaction.ts';

/**
 * The given messages that have rows, with the largest index of each rollout. Plan: Index Scan using rollout_heads_org_id_id_key for each
 * rollout; primary key of rollout_messages in the one partition of its day.
 */
const STORED = `
SELECT h.id::text, h.seq::text, h.sealed_at IS NOT NULL AS sealed, h.max_index, ARRAY(
  SELECT m.event_id::text FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq AND m.event_id = ANY($3::uuid[])
) AS event_ids
FROM rollout_heads h WHERE h.org_id = $1 AND h.id = ANY($2::uuid[])`;

/** `sealed`: its transcript may have more of them. */
export type StoredRollout = StoredMessages & { seq: string; sealed: boolean };

/** By rollout id. */
export async function storedMessages(
  client: Pick<pg.Pool, 'query'>,
  orgId: string,
  rolloutIds: readonly string[],
  eventIds: readonly string[],
): Promise<Map<string, StoredRollout>> {
  if (rolloutIds.length === 0) return new Map();
  const { rows } = await client.query<{ id: string; seq: string; sealed: boolean; max_index: number; event_ids: string[] }>({
    name: 'otlp-stored-messages',
    text: STORED,
    values: [orgId, rolloutIds, eventIds],
  });
  return new Map(
    rows.map(({ id, seq, sealed, max_index, event_ids }) => [id, { seq, sealed, maxIndex: max_index, eventIds: new Set(event_ids) }]),
  );
}

/** The first key of the lock; the second is the organisation. */
const ORGANISATION_LOCK = 1869899888;

/**
 * Runs `work` in a transaction that excludes other replicas for this organisation. The lock ends with the transaction, so that the next one
 * reads what this one stored. READ COMMITTED: statements after the lock see all earlier commits.
 */
export function withOrganisationLock<T>(pool: pg.Pool, orgId: string, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1::int, hashtext($2))', [ORGANISATION_LOCK, orgId]);
    return work(client);
  });
}
