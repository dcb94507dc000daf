import type pg from 'pg';
import type { StoredMessages } from '@palestra/rollouts/import';
import { inTransaction } from '../../platform/database/transaction.ts';

/**
 * Of the asked messages those that have rows, with the largest index of each rollout.
 * Plan: Index Scan using rollout_heads_org_id_id_key for each rollout; primary key of rollout_messages in the one partition of its day.
 */
const STORED = `
SELECT h.id::text, h.seq::text, h.sealed_at IS NOT NULL AS sealed, h.max_index, ARRAY(
  SELECT m.event_id::text FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq AND m.event_id = ANY($3::uuid[])
) AS event_ids
FROM rollout_heads h WHERE h.org_id = $1 AND h.id = ANY($2::uuid[])`;

/** `sealed`: more of them may be in its transcript. */
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
const TURN_LOCK = 1869899888;

/**
 * Does `work` in a transaction while no other replica does any for this organisation. The lock goes with the transaction: what the next
 * one reads is what this one stored. READ COMMITTED: statements after the lock see what was committed before it was had.
 */
export function withOrganisationTurn<T>(pool: pg.Pool, orgId: string, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1::int, hashtext($2))', [TURN_LOCK, orgId]);
    return work(client);
  });
}
