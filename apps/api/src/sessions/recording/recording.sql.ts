import type { CallState } from '@palestra/protocol';
import type pg from 'pg';
import { RECORDING_LOCK } from '../../store/storage/ledger-retention.sql.ts';

/** A session to record, with the fields that its rollout needs. */
export interface RecordedSession {
  sid: string;
  org_id: string;
  /** `owner/name`; null until it was pinned. */
  environment: string | null;
  environment_id: string | null;
  /** Number of the version on which it ran; null when it was deleted. */
  environment_version: number | null;
  /** Variant; null = the default one. */
  env: string | null;
  /** JSON texts */
  task: string | null;
  recording: string;
  state: string;
  failure_class: string | null;
  /** JSON text */
  failure: string | null;
  /** `seq` of the last call that was written; null before the start event was. */
  recorded_seq: string | null;
  /** Number of calls up to `recorded_seq` that are part of the episode. */
  recorded_calls: number;
  /** All calls after that, also those that are no part of the episode. */
  pending_calls: number;
  /** A call has ended the episode. */
  finished: boolean;
  /** Of the last call of the episode; null while that call runs, and without calls. */
  last_failure_class: string | null;
  /** Calls of the episode that have not ended. */
  open_calls: number;
  /** Milliseconds since the epoch. */
  created_at: number;
  /** Null while it is alive. */
  ended_at: number | null;
  /** Milliseconds since its end. */
  ended_ms: number | null;
}

export interface RecordedCall {
  sid: string;
  seq: string;
  task_id: string;
  /** Whether the call is part of the episode. */
  counts: boolean;
  tool: string;
  input: string;
  state: CallState;
  result: string | null;
  ok: boolean | null;
  reward: number | null;
  finished: boolean | null;
  failure_class: string | null;
  started_at: number;
  ended_at: number | null;
  /** The call began so recently that an earlier call may not be visible yet. */
  fresh: boolean;
}

/** Limit of one session in one round. */
const MAX_CALLS = 500;
/** Limit of stored (compressed) results and inputs in one round. One call is always read. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Sequence numbers are assigned before the commit: a smaller one may become visible this much later than a larger one. */
const SETTLE = `interval '1 s'`;

/**
 * Locks the sessions that no other replica records or erases now, until the transaction ends. It is an advisory lock, because a row lock
 * would block the engine's changes of the session and of all sessions in the same batch. A separate statement, so that the next one reads
 * the state after an erasure.
 */
const LOCK = `SELECT sid, pg_try_advisory_xact_lock(${RECORDING_LOCK}, hashtext(sid)) AS mine FROM unnest($1::text[]) AS s(sid)`;

/** A condition: the call is part of the episode. Calls that were abandoned before they ran, and calls of a judge, are not. */
const COUNTS = (call: string) =>
  `${call}.kind = 'call' AND NOT (${call}.state = 'refused' AND position('"code":"call_abandoned"' IN COALESCE(${call}.result, '')) > 0)`;

/**
 * The sessions of `$1` whose recording is not complete. Plan: Index Scan using sessions_to_record_idx, per session an Index Scan using
 * session_calls_sid_seq_idx.
 */
const CLAIM = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM sessions WHERE sid = ANY($1::text[]) AND recording IS NOT NULL AND (recorded_seq IS NULL OR recorded_seq >= 0))
  SELECT s.sid, s.org_id, s.environment, v.environment_id::text, v.number AS environment_version, s.env, s.task, s.recording, s.state, s.failure_class, s.failure,
    s.recorded_seq, c.*,
    extract(epoch FROM s.created_at)::float8 * 1000 AS created_at, extract(epoch FROM s.ended_at)::float8 * 1000 AS ended_at,
    extract(epoch FROM now() - s.ended_at)::float8 * 1000 AS ended_ms
  FROM asked AS s LEFT JOIN environment_versions AS v ON v.id::text = s.version_id
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE c.seq <= s.recorded_seq AND ${COUNTS('c')})::int AS recorded_calls,
      count(*) FILTER (WHERE c.seq > COALESCE(s.recorded_seq, 0))::int AS pending_calls,
      COALESCE(bool_or(c.finished), false) AS finished,
      (array_agg(c.failure_class ORDER BY c.seq DESC) FILTER (WHERE ${COUNTS('c')}))[1] AS last_failure_class,
      count(*) FILTER (WHERE c.ended_at IS NULL AND ${COUNTS('c')})::int AS open_calls
    FROM session_calls AS c WHERE c.sid = s.sid) AS c`;

/** The next calls of each session, in order, at most MAX_BYTES together: of all sessions the first one, then the second one, small ones first. Plan: per session an Index Scan using session_calls_sid_seq_idx. */
const CALLS = `
  SELECT sid, seq, task_id, ${COUNTS('c')} AS counts, tool, input, state, result, ok, reward, finished, failure_class, fresh,
    extract(epoch FROM started_at)::float8 * 1000 AS started_at, extract(epoch FROM ended_at)::float8 * 1000 AS ended_at
  FROM (
    SELECT c.*, sum(c.bytes) OVER (ORDER BY c.place, c.bytes, c.sid) - c.bytes AS bytes_before
    FROM unnest($1::text[], $2::bigint[]) AS s(sid, after)
    CROSS JOIN LATERAL (
      SELECT c.*, pg_column_size(c.input) + COALESCE(pg_column_size(c.result), 0) AS bytes, c.started_at > now() - ${SETTLE} AS fresh,
        row_number() OVER (ORDER BY c.seq) AS place
      FROM session_calls AS c WHERE c.sid = s.sid AND c.seq > s.after ORDER BY c.seq LIMIT ${MAX_CALLS}) AS c
  ) AS c WHERE bytes_before < ${MAX_BYTES} ORDER BY sid, seq`;

/** Skips locked rows, because two batches that wait for each other would deadlock. Their calls are written again later, without an effect. */
const ADVANCE = `
  UPDATE sessions AS s SET recorded_seq = n.seq
  FROM (SELECT n.* FROM unnest($1::text[], $2::bigint[]) AS n(sid, seq) JOIN sessions USING (sid)
        WHERE sessions.recorded_seq IS NULL OR sessions.recorded_seq >= 0 ORDER BY n.sid FOR UPDATE OF sessions SKIP LOCKED) AS n
  WHERE s.sid = n.sid RETURNING s.sid`;

/** Sessions whose recording is late, because their replica died. Plan: Index Scan using sessions_to_record_idx, per session one probe of session_calls_sid_seq_idx. */
const LEFT_BEHIND = `
  SELECT s.sid FROM sessions AS s
  WHERE s.recording IS NOT NULL AND (s.recorded_seq IS NULL OR s.recorded_seq >= 0) AND s.sid > $1
    AND (s.ended_at < now() - interval '5 s' OR (s.recorded_seq IS NULL AND s.task IS NOT NULL) OR EXISTS (
      SELECT 1 FROM session_calls AS c WHERE c.sid = s.sid AND c.seq > COALESCE(s.recorded_seq, 0) AND c.ended_at < now() - interval '5 s'))
  ORDER BY s.sid LIMIT $2`;

type Queryable = Pick<pg.Pool, 'query'>;

/** Call in a transaction; the claim ends with it. `busy`: sessions that another process records or erases. */
export async function claimSessions(client: Queryable, sids: string[]): Promise<{ sessions: RecordedSession[]; busy: string[] }> {
  const locks = await client.query<{ sid: string; mine: boolean }>({ name: 'recording_lock', text: LOCK, values: [sids] });
  const mine = locks.rows.filter((lock) => lock.mine).map(({ sid }) => sid);
  const { rows } = await client.query<RecordedSession>({ name: 'recording_claim', text: CLAIM, values: [mine] });
  return { sessions: rows, busy: locks.rows.filter((lock) => !lock.mine).map(({ sid }) => sid) };
}

export async function nextCalls(
  client: Queryable,
  sessions: Pick<RecordedSession, 'sid' | 'recorded_seq'>[],
): Promise<Map<string, RecordedCall[]>> {
  const values = [sessions.map(({ sid }) => sid), sessions.map((session) => session.recorded_seq ?? '0')];
  const { rows } = await client.query<RecordedCall>({ name: 'recording_calls', text: CALLS, values });
  const calls = new Map<string, RecordedCall[]>();
  for (const row of rows) {
    const known = calls.get(row.sid);
    if (known === undefined) calls.set(row.sid, [row]);
    else known.push(row);
  }
  return calls;
}

/** Stores the `seq` up to which each session is recorded; -1 = completely. Returns the sessions whose row was updated. */
export async function advanceRecorded(client: Queryable, pointers: { sid: string; seq: string }[]): Promise<Set<string>> {
  const values = [pointers.map(({ sid }) => sid), pointers.map(({ seq }) => seq)];
  const { rows } = await client.query<{ sid: string }>({ name: 'recording_advance', text: ADVANCE, values });
  return new Set(rows.map(({ sid }) => sid));
}

/** A page of sessions that dead replicas left unrecorded, ordered by SID. */
export async function leftBehind(pool: Queryable, after: string, limit: number): Promise<string[]> {
  const { rows } = await pool.query<{ sid: string }>({ name: 'recording_left', text: LEFT_BEHIND, values: [after, limit] });
  return rows.map(({ sid }) => sid);
}

/**
 * Starts the recording of a session that was opened without a run. `written_by` is no replica, so the replica that holds the session in
 * memory reads this version before it writes the session again. Plan: Index Scan using sessions_pkey.
 */
const BEGIN = `
  UPDATE sessions SET recording = $3, version = version + 1, written_by = 'recording'
  WHERE sid = $1 AND org_id = $2 AND recording IS NULL RETURNING recording`;

/** The recording of the session: `recording`, or the one that it had before; null when the organisation has no such session. JSON texts. */
export async function beginRecording(pool: Queryable, orgId: string, sid: string, recording: string): Promise<string | null> {
  const begun = await pool.query<{ recording: string }>(BEGIN, [sid, orgId, recording]);
  if (begun.rows[0] !== undefined) return begun.rows[0].recording;
  const had = await pool.query<{ recording: string }>('SELECT recording FROM sessions WHERE sid = $1 AND org_id = $2', [sid, orgId]);
  return had.rows[0]?.recording ?? null;
}
