import type pg from 'pg';

/** What is kept of sessions by `sid`, beside their own rows. */
const OF_SESSION = ['session_calls', 'text_turns', 'text_sessions'];
const deletions = OF_SESSION.map((table) => `${table}_gone AS (DELETE FROM ${table} WHERE sid = ANY(ARRAY(SELECT sid FROM gone)))`).join(
  ', ',
);

/** `recorded_seq` of a session of which all is written. */
const COMPLETE = -1;
/** `recorded_seq` of a session whose rollout was erased before it had been written to its end: nothing more is written of it. */
const ERASED = -2;
/** The lock under which a session is recorded. */
export const RECORDING_LOCK = 1885431907;
/** A result may reach the ledger so much later than the end of its session: PostgreSQL was away, and its process kept trying. */
const LATE = `interval '15 minutes'`;

/** Plan: rollout_heads_pkey, per rollout an Index Scan using sessions_recorded_rollout_idx. */
const RECORDED = `rollout_heads h JOIN sessions s ON (s.recording::jsonb) ->> 'rolloutId' = h.id::text AND s.recording IS NOT NULL
    AND s.org_id = h.org_id::text WHERE h.seq = ANY($1::bigint[])`;
/** By the locks' own order: two that erase wait for each other in it. */
const LOCK = `SELECT pg_advisory_xact_lock(${RECORDING_LOCK}, hash) FROM (SELECT hashtext(s.sid) AS hash FROM ${RECORDED} ORDER BY 1) o`;
/** Those that are written to their end, and have been erased, or will be when they have ended. Plan: as above; the sid indexes of the tables. */
const OF_ROLLOUTS = `
  WITH recorded AS MATERIALIZED (SELECT s.sid, s.ended_at IS NOT NULL AND s.recorded_seq = ${COMPLETE} AS complete FROM ${RECORDED} ORDER BY s.sid FOR NO KEY UPDATE OF s),
  marked AS (UPDATE sessions SET recorded_seq = ${ERASED} WHERE sid = ANY(ARRAY(SELECT sid FROM recorded WHERE NOT complete))),
  gone AS MATERIALIZED (SELECT sid FROM recorded WHERE complete),
  ${deletions}
  SELECT FROM gone`;

/** Plan: Index Scan using sessions_erased_idx; the sid indexes of the tables. */
const ENDED = `
  WITH gone AS MATERIALIZED (SELECT sid FROM sessions WHERE recorded_seq = ${ERASED} AND ended_at < now() - ${LATE} ORDER BY sid LIMIT $1 FOR NO KEY UPDATE),
  ${deletions}
  UPDATE sessions SET recorded_seq = ${COMPLETE} WHERE sid = ANY(ARRAY(SELECT sid FROM gone))`;

/** Plan: per organisation with a retention an Index Scan using sessions_org_id_created_at_sid_idx; the sid indexes of the tables. */
const EXPIRED = `
  WITH gone AS MATERIALIZED (
    SELECT s.sid FROM organisations o JOIN sessions s ON s.org_id = o.id::text
    WHERE o.retention_days IS NOT NULL AND s.created_at < now() - o.retention_days * interval '1 day'
      AND s.ended_at < now() - o.retention_days * interval '1 day' AND (s.recording IS NULL OR s.recorded_seq < 0) LIMIT $1),
  ${deletions}
  DELETE FROM sessions WHERE sid = ANY(ARRAY(SELECT sid FROM gone))`;

/**
 * Deletes the calls of sessions that these rollouts were recorded from, in the transaction of `client`: a rollout of the ledger is a copy of
 * it. Of one that still runs nothing is written any more from here on, and its calls, which its client may still need, go after its end
 * (`eraseEndedLedgers`). What a client uploaded is no copy; the calls of its session go by the retention of their organisation. To be called before
 * heads are locked: whoever records has this lock first, too.
 */
export async function eraseRecordedCalls(client: Pick<pg.Pool, 'query'>, seqs: readonly string[]): Promise<void> {
  await client.query(LOCK, [seqs]);
  await client.query(OF_ROLLOUTS, [seqs]);
}

/** Deletes the calls of sessions that ran when their rollouts were erased, and that have ended since. Answers how many sessions they were, at most `limit`. */
export async function eraseEndedLedgers(pool: Pick<pg.Pool, 'query'>, limit: number): Promise<number> {
  return (await pool.query(ENDED, [limit])).rowCount ?? 0;
}

/** Deletes sessions with their calls that ended longer ago than their organisation keeps things. Answers how many they were, at most `limit`. */
export async function eraseExpiredSessions(pool: pg.Pool, limit: number): Promise<number> {
  return (await pool.query(EXPIRED, [limit])).rowCount ?? 0;
}
