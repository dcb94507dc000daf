import type pg from 'pg';
import type { StoredMessages } from '@palestra/rollouts/import';

/**
 * Of the asked messages those that are stored, with the largest index of each rollout.
 * Plan: Index Scan using rollout_heads_org_id_id_key for each rollout; primary key of rollout_messages in the one partition of its day.
 */
const STORED = `
SELECT h.id::text, h.max_index, ARRAY(
  SELECT m.event_id::text FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq AND m.event_id = ANY($3::uuid[])
) AS event_ids
FROM rollout_heads h WHERE h.org_id = $1 AND h.id = ANY($2::uuid[])`;

export async function storedMessages(
  pool: Pick<pg.Pool, 'query'>,
  orgId: string,
  rolloutIds: readonly string[],
  eventIds: readonly string[],
): Promise<Map<string, StoredMessages>> {
  if (rolloutIds.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; max_index: number; event_ids: string[] }>({
    name: 'otlp-stored-messages',
    text: STORED,
    values: [orgId, rolloutIds, eventIds],
  });
  return new Map(rows.map((row) => [row.id, { maxIndex: row.max_index, eventIds: new Set(row.event_ids) }]));
}
