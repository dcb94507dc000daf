import type pg from 'pg';

/** What is kept of sessions by `sid`, beside their own rows. */
const OF_SESSION = ['session_calls', 'text_turns', 'text_sessions'];
const deletions = OF_SESSION.map((table) => `${table}_gone AS (DELETE FROM ${table} WHERE sid = ANY(ARRAY(SELECT sid FROM gone)))`).join(
  ', ',
);

/** Plan: rollout_heads_pkey, per rollout an Index Scan using sessions_recorded_rollout_idx; the sid indexes of the tables. */
const OF_ROLLOUTS = `
  WITH gone AS MATERIALIZED (
    SELECT s.sid FROM rollout_heads h JOIN sessions s ON (s.recording::jsonb) ->> 'rolloutId' = h.id::text AND s.recording IS NOT NULL
    WHERE h.seq = ANY($1::bigint[]) AND s.org_id = h.org_id::text AND s.ended_at IS NOT NULL AND s.recorded_seq = -1),
  ${deletions}
  SELECT FROM gone`;

/** Plan: per organisation with a retention an Index Scan using sessions_org_id_created_at_sid_idx; the sid indexes of the tables. */
const EXPIRED = `
  WITH gone AS MATERIALIZED (
    SELECT s.sid FROM organisations o JOIN sessions s ON s.org_id = o.id::text
    WHERE o.retention_days IS NOT NULL AND s.created_at < now() - o.retention_days * interval '1 day'
      AND s.ended_at < now() - o.retention_days * interval '1 day' AND (s.recording IS NULL OR s.recorded_seq = -1) LIMIT $1),
  ${deletions}
  DELETE FROM sessions WHERE sid = ANY(ARRAY(SELECT sid FROM gone))`;

/**
 * Deletes the calls of ended sessions that these rollouts were recorded from, in the transaction of `client`: a rollout of the ledger is a copy of
 * it. What a client uploaded is not; the calls of its session go by the retention of their organisation.
 */
export async function eraseRecordedCalls(client: Pick<pg.Pool, 'query'>, seqs: readonly string[]): Promise<void> {
  await client.query(OF_ROLLOUTS, [seqs]);
}

/** Deletes sessions with their calls that ended longer ago than their organisation keeps things. Answers how many they were, at most `limit`. */
export async function eraseExpiredSessions(pool: pg.Pool, limit: number): Promise<number> {
  return (await pool.query(EXPIRED, [limit])).rowCount ?? 0;
}
