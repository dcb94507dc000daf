import type pg from 'pg';
import type { CallState, FailureClass, SessionState } from '@palestra/protocol';

/** Reads of sessions and their calls for people. The first condition of every statement is the organisation. */

export interface SessionRowRecord {
  sid: string;
  state: SessionState;
  environment: string | null;
  version_id: string | null;
  version_number: number | null;
  env: string | null;
  owner_replica_id: string | null;
  user_name: string | null;
  key_id: string | null;
  key_name: string | null;
  key_prefix: string | null;
  created_at: Date;
  last_seen_at: Date;
  last_request_at: Date;
  expires_at: Date | null;
  ended_at: Date | null;
  heartbeat_timeout_ms: number;
  idle_timeout_ms: number;
  /** JSON text, like `task` and `recording`. */
  failure: string | null;
  failure_class: FailureClass | null;
  recording: string | null;
  uploaded_run: string | null;
  uploaded_id: string | null;
  forked_from: string | null;
  forked_at_call: number | null;
  queued_at: Date | null;
  waiting: boolean;
  admitted_at: Date | null;
  num_calls: number;
  last_tool: string | null;
  last_state: CallState | null;
  last_class: FailureClass | null;
  last_started_at: Date | null;
}

const ROW = `s.sid, s.state, s.environment, s.version_id, v.number AS version_number, s.env, s.owner_replica_id, u.name AS user_name,
  s.key_id, k.name AS key_name, k.prefix AS key_prefix, s.created_at, s.last_seen_at, s.last_request_at, s.expires_at, s.ended_at,
  s.heartbeat_timeout_ms, s.idle_timeout_ms, s.failure, s.failure_class, s.recording, s.forked_from, s.forked_at_call, s.queued_at,
  s.waiting_on IS NOT NULL AS waiting, s.admitted_at, c.num_calls, l.tool AS last_tool, l.state AS last_state,
  l.failure_class AS last_class, l.started_at AS last_started_at, b.run AS uploaded_run, b.id AS uploaded_id`;

/** Rollouts with one session id that are looked at: other organisations can upload any id. */
const MAX_NAMED = 20;
/** Plan: primary keys, session_calls_sid_seq_idx and rollout_meta_sid_idx, once for each row of the page. */
const JOINS = `
  LEFT JOIN environment_versions AS v ON v.id = s.version_id::uuid
  LEFT JOIN users AS u ON u.id = s.user_id::uuid
  LEFT JOIN api_keys AS k ON k.id = s.key_id::uuid
  CROSS JOIN LATERAL (SELECT count(*)::int AS num_calls FROM session_calls WHERE sid = s.sid) AS c
  LEFT JOIN LATERAL (
    SELECT tool, state, failure_class, started_at FROM session_calls WHERE sid = s.sid ORDER BY seq DESC LIMIT 1
  ) AS l ON true
  LEFT JOIN LATERAL (
    SELECT r.name AS run, h.id FROM (SELECT rollout_seq FROM rollout_meta WHERE sid = s.sid LIMIT ${MAX_NAMED}) AS m
    JOIN rollout_heads AS h ON h.seq = m.rollout_seq JOIN runs AS r ON r.seq = h.run_seq
    WHERE s.recording IS NULL AND h.org_id::text = s.org_id AND r.deleted_at IS NULL ORDER BY h.seq LIMIT 1
  ) AS b ON true`;

export interface SessionFilter {
  orgId: string;
  /** Any of these states; with `live` and `ended`, also all that have not ended or have ended. Absent: all. */
  states?: string[] | undefined;
  live?: boolean;
  ended?: boolean;
  environment?: string | undefined;
  run?: string | undefined;
  keyId?: string | undefined;
  failureClass?: string | undefined;
  forkedFrom?: string | undefined;
  /** The last row of the previous page. */
  after: { createdAt: Date; sid: string } | null;
  limit: number;
}

/** Stored recordings begin with their run, as `stringifyJson` writes it. We compare text, because a cast to JSON fails for some. */
const recordingPrefix = (run: string): string => `{"run":${JSON.stringify(run)},`;

/**
 * A page of sessions, newest first. Plan: Index Scan using sessions_org_id_created_at_sid_idx from the cursor, so the cost of a page does not
 * depend on the number of stored sessions (4 ms with a million). Sessions that are opened meanwhile come before the first page. A filter that
 * few sessions match reads all sessions of the organisation (170 ms for a million).
 */
export async function selectSessions(pool: pg.Pool, filter: SessionFilter): Promise<SessionRowRecord[]> {
  const values: unknown[] = [filter.orgId];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const where = ['org_id = $1'];
  const states = [
    filter.live && 'ended_at IS NULL',
    filter.ended && 'ended_at IS NOT NULL',
    filter.states !== undefined && filter.states.length > 0 && `state = ANY(${bind(filter.states)}::text[])`,
  ].filter((condition) => typeof condition === 'string');
  if (states.length > 0) where.push(`(${states.join(' OR ')})`);
  if (filter.environment !== undefined) where.push(`environment = ${bind(filter.environment)}`);
  if (filter.run !== undefined) where.push(`starts_with(recording, ${bind(recordingPrefix(filter.run))})`);
  if (filter.keyId !== undefined) where.push(`key_id = ${bind(filter.keyId)}`);
  if (filter.failureClass !== undefined) where.push(`failure_class = ${bind(filter.failureClass)}`);
  if (filter.forkedFrom !== undefined) where.push(`forked_from = ${bind(filter.forkedFrom)}`);
  if (filter.after !== null) {
    const createdAt = bind(filter.after.createdAt);
    where.push(`created_at <= ${createdAt} AND (created_at < ${createdAt} OR sid > ${bind(filter.after.sid)})`);
  }
  const page = `SELECT * FROM sessions WHERE ${where.join(' AND ')} ORDER BY created_at DESC, sid LIMIT ${bind(filter.limit)}`;
  const { rows } = await pool.query<SessionRowRecord>(
    `SELECT ${ROW} FROM (${page}) AS s ${JOINS} ORDER BY s.created_at DESC, s.sid`,
    values,
  );
  return rows;
}

export interface SessionDetailRecord extends SessionRowRecord {
  task: string | null;
  running: number;
  ok: number;
  policy: number;
  environment_failures: number;
  infrastructure: number;
  total_reward: number | null;
}

/** Plan: Index Scan using sessions_pkey; the session's calls once by session_calls_sid_seq_idx. */
const ONE = `
  SELECT ${ROW}, s.task, f.*
  FROM (SELECT * FROM sessions WHERE org_id = $1 AND sid = $2) AS s ${JOINS}
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'running')::int AS running,
      count(*) FILTER (WHERE failure_class = 'ok')::int AS ok,
      count(*) FILTER (WHERE failure_class = 'policy')::int AS policy,
      count(*) FILTER (WHERE failure_class = 'environment')::int AS environment_failures,
      count(*) FILTER (WHERE failure_class = 'infrastructure')::int AS infrastructure,
      sum(reward) FILTER (WHERE failure_class = 'ok') AS total_reward
    FROM session_calls WHERE sid = s.sid
  ) AS f`;

/** Null for an unknown SID and for a session of another organisation. */
export async function selectSession(pool: pg.Pool, orgId: string, sid: string): Promise<SessionDetailRecord | null> {
  const { rows } = await pool.query<SessionDetailRecord>(ONE, [orgId, sid]);
  return rows[0] ?? null;
}

/** Whether the organisation has that session. Plan: Index Scan using sessions_pkey. */
export async function ownsSession(pool: pg.Pool, orgId: string, sid: string): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT 1 FROM sessions WHERE org_id = $1 AND sid = $2', [orgId, sid]);
  return rowCount === 1;
}

/** Characters of an input or a result in lists. */
const BODY_LIMIT = 65_536;
const WHOLE = 2_147_483_647;

export interface CallRowRecord {
  task_id: string;
  seq: string;
  kind: 'call' | 'score_group';
  tool: string;
  input: string;
  input_bytes: number;
  state: CallState;
  /** JSON text of the result, or of how it failed. */
  result: string | null;
  result_bytes: number | null;
  truncated: boolean;
  ok: boolean | null;
  reason: string | null;
  reward: number | null;
  finished: boolean | null;
  failure_class: FailureClass | null;
  started_at: Date;
  ended_at: Date | null;
  undelivered: boolean;
  at_call: number | null;
}

/** The calls that a fork counts: those whose tool ran to its end. */
const REPLAYED = (from: string) => `${from}.kind = 'call' AND ${from}.state IN ('result', 'tool_failed')`;
const CALL = (limit: string) => `c.task_id, c.seq, c.kind, c.tool, left(c.input, ${limit}) AS input, octet_length(c.input) AS input_bytes,
  c.state, left(c.result, ${limit}) AS result, octet_length(c.result) AS result_bytes,
  greatest(length(c.input), length(c.result)) > ${limit} AS truncated, c.ok, c.reason, c.reward, c.finished, c.failure_class,
  c.started_at, c.ended_at, c.broken_at IS NOT NULL AS undelivered`;

/** Plan: Index Scan using session_calls_sid_seq_idx from the cursor; the same index counts the calls before it. */
const CALLS = `
  SELECT ${CALL(String(BODY_LIMIT))},
    CASE WHEN ${REPLAYED('c')} THEN (b.replayed + count(*) FILTER (WHERE ${REPLAYED('c')}) OVER (ORDER BY c.seq))::int END AS at_call
  FROM (SELECT * FROM session_calls WHERE sid = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS c
  CROSS JOIN (SELECT count(*) AS replayed FROM session_calls AS e WHERE e.sid = $1 AND e.seq <= $2 AND ${REPLAYED('e')}) AS b
  ORDER BY c.seq`;

export async function selectCalls(pool: pg.Pool, sid: string, after: number, limit: number): Promise<CallRowRecord[]> {
  return (await pool.query<CallRowRecord>(CALLS, [sid, after, limit])).rows;
}

/** Plan: Index Scan using session_calls_pkey for each of the few calls. */
const SOME = (limit: string) => `
  SELECT ${CALL(limit)},
    CASE WHEN ${REPLAYED('c')}
      THEN (SELECT count(*)::int FROM session_calls AS e WHERE e.sid = c.sid AND e.seq <= c.seq AND ${REPLAYED('e')}) END AS at_call
  FROM session_calls AS c WHERE c.sid = $1 AND c.task_id = ANY($2::text[]) ORDER BY c.seq`;

export async function selectCallsById(pool: pg.Pool, sid: string, taskIds: string[]): Promise<CallRowRecord[]> {
  return (await pool.query<CallRowRecord>(SOME(String(BODY_LIMIT)), [sid, taskIds])).rows;
}

/** One call with all of its input and result. */
export async function selectWholeCall(pool: pg.Pool, sid: string, taskId: string): Promise<CallRowRecord | null> {
  return (await pool.query<CallRowRecord>(SOME(String(WHOLE)), [sid, [taskId]])).rows[0] ?? null;
}
