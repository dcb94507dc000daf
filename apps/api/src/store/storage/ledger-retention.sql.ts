import type pg from 'pg';

/** Tables with rows of sessions by `sid`, besides `sessions`. */
const OF_SESSION = ['session_calls', 'text_turns', 'text_sessions'];
const deletions = OF_SESSION.map((table) => `${table}_gone AS (DELETE FROM ${table} WHERE sid = ANY(ARRAY(SELECT sid FROM gone)))`).join(
  ', ',
);

/** `recorded_seq` of a completely recorded session. */
const COMPLETE = -1;
/** `recorded_seq` of a session whose rollout was erased before it was recorded completely: nothing more is recorded. */
const ERASED = -2;
/** The lock for recording a session. */
export const RECORDING_LOCK = 1885431907;
/** A result may reach the ledger this much later than the end of its session, if PostgreSQL was unavailable. */
const LATE = `interval '15 minutes'`;

/** Plan: rollout_heads_pkey, per rollout an Index Scan using sessions_recorded_rollout_idx. */
const RECORDED = `rollout_heads h JOIN sessions s ON (s.recording::jsonb) ->> 'rolloutId' = h.id::text AND s.recording IS NOT NULL
    AND s.org_id = h.org_id::text WHERE h.seq = ANY($1::bigint[])`;
/** In the order of the locks, so that two erasures cannot deadlock. */
const LOCK = `SELECT pg_advisory_xact_lock(${RECORDING_LOCK}, hash) FROM (SELECT hashtext(s.sid) AS hash FROM ${RECORDED} ORDER BY 1) o`;
/**
 * Deletes completely recorded sessions, and marks the others for deletion after their end. Plan: as above; the sid indexes of the tables.
 */
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
 * Deletes the calls of the sessions from which these rollouts were recorded, in the transaction of `client`, because such a rollout is a
 * copy of its ledger. If a session still runs, its recording stops, and its calls, which its client may need, are deleted after its end
 * (`eraseEndedLedgers`). An uploaded rollout is not a copy: the retention of the organisation deletes the calls of its session. Call it
 * before heads are locked, because recorders also take this lock first.
 */
export async function eraseRecordedCalls(client: Pick<pg.Pool, 'query'>, seqs: readonly string[]): Promise<void> {
  await client.query(LOCK, [seqs]);
  await client.query(OF_ROLLOUTS, [seqs]);
}

/**
 * Deletes the calls of sessions that ran when their rollouts were erased and have ended since. Returns the number of sessions, at most
 * `limit`.
 */
export async function eraseEndedLedgers(pool: Pick<pg.Pool, 'query'>, limit: number): Promise<number> {
  return (await pool.query(ENDED, [limit])).rowCount ?? 0;
}

/**
 * Deletes the ended sessions that rollouts of these runs name, and those of these keys, with their calls. Plan: per run an Index Scan using
 * rollout_heads_run_seq_idx, per rollout two primary keys; per key an Index Scan using sessions_org_id_created_at_sid_idx.
 */
export async function eraseSessionsOfRuns(
  pool: pg.Pool,
  orgId: string,
  runSeqs: readonly number[],
  keyIds: readonly string[],
): Promise<void> {
  await pool.query(
    `WITH named AS (
       SELECT COALESCE(m.sid, b.start #>> '{metadata,session_id}') AS sid FROM rollout_heads h
       LEFT JOIN rollout_meta m ON m.rollout_seq = h.seq LEFT JOIN rollout_starts b ON b.rollout_seq = h.seq WHERE h.run_seq = ANY($2::int[])
     ), gone AS MATERIALIZED (
       SELECT sid FROM sessions WHERE org_id = $1 AND ended_at IS NOT NULL AND (sid IN (SELECT sid FROM named) OR key_id = ANY($3::text[]))
       ORDER BY sid FOR NO KEY UPDATE
     ), ${deletions}
     DELETE FROM sessions WHERE sid = ANY(ARRAY(SELECT sid FROM gone))`,
    [orgId, runSeqs, keyIds],
  );
}

/** Deletes sessions and their calls after the retention of their organisation. Returns their number, at most `limit`. */
export async function eraseExpiredSessions(pool: pg.Pool, limit: number): Promise<number> {
  return (await pool.query(EXPIRED, [limit])).rowCount ?? 0;
}
