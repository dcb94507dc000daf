import type { JsonObject } from '@palestra/protocol';
import type pg from 'pg';
import type { CallMessage } from '@palestra/rollouts';
import { MESSAGE_BYTES } from '../derive.sql.ts';
import { matchKey } from './match-key.ts';

/** A quiet rollout that changed since its last comparison with the ledger. Times in milliseconds since the epoch. */
export interface UnverifiedRollout {
  seq: string;
  id: string;
  org_id: string;
  day: string;
  revision: number;
  /** Of its messages. */
  bytes: number;
  /** The name in sessions: a bare name gets the owner of its environment. */
  environment: string | null;
  split: string | null;
  task_index: number | null;
  task_key: string | null;
  reward_reported: number | null;
  failure_class: string | null;
  /** If split and index above are those of a session that matched: what the upload contains. */
  upload: { start: JsonObject | null; info: JsonObject | null } | null;
  /** The rule of the previous comparison. */
  rule: string | null;
  /** The session that the upload names. */
  named_sid: string | null;
  /** Time stamp of the client's start event: a number, or any other value. */
  started_at: unknown;
  received_at: number;
  last_at: number;
  /** Since its last event. */
  age_ms: number;
}

/** An unfinished rollout without an event for this long counts as uploaded. */
export const QUIET = `interval '10 s'`;

/**
 * `named`: the telemetry bits of the provenance if an upload names its session. At most `bytes` of messages in memory, but at least one rollout.
 * Plan: Index Scan using rollout_heads_unverified_idx (partial) in order, bounded; per row primary keys.
 */
export async function selectUnverified(pool: pg.Pool, limit: number, bytes: number, named: number): Promise<UnverifiedRollout[]> {
  const { rows } = await pool.query<UnverifiedRollout>({
    name: 'verify-rollouts',
    text: `SELECT * FROM (
        SELECT h.seq, h.id, h.org_id, h.day::text, h.revision, h.bytes::float8 AS bytes, h.failure_class, m.telemetry_rule AS rule,
          CASE WHEN position('/' IN e.environment) = 0 THEN COALESCE(x.owner || '/' || x.name, e.environment) ELSE e.environment END AS environment, r.split, r.task_index, t.key AS task_key, r.reward_reported,
          CASE WHEN m.ledger_task ? 'index' THEN jsonb_build_object('start', b.start, 'info', b.rollout_info) END AS upload,
          CASE WHEN r.provenance & $3 = $3 THEN m.sid END AS named_sid, b.start->'timestamp' AS started_at,
          extract(epoch FROM h.received_at)::float8 * 1000 AS received_at, extract(epoch FROM h.last_at)::float8 * 1000 AS last_at,
          extract(epoch FROM now() - h.last_at)::float8 * 1000 AS age_ms, sum(h.bytes + ${MESSAGE_BYTES}::bigint * h.messages) OVER (ORDER BY h.verify_at, h.seq) - (h.bytes + ${MESSAGE_BYTES}::bigint * h.messages) AS bytes_before
        FROM (SELECT * FROM rollout_heads WHERE unverified AND run_seq IS NOT NULL AND verify_at <= now() AND NOT dirty AND (finished OR last_at < now() - ${QUIET})
          ORDER BY verify_at, seq LIMIT $1) h
        JOIN rollouts r ON r.seq = h.seq JOIN rollout_environments e ON e.id = r.env_id LEFT JOIN environments x ON x.id = e.environment_id
        LEFT JOIN rollout_starts b ON b.rollout_seq = h.seq LEFT JOIN rollout_meta m ON m.rollout_seq = h.seq LEFT JOIN rollout_tasks t ON t.id = r.task_id) u
      WHERE bytes_before < $2 ORDER BY seq`,
    values: [limit, bytes, named],
  });
  return rows;
}

type CallTuple = [number, string, string | null, string | null, number | null, boolean, string | null];

/** Calls and results of unsealed rollouts, by `seq`. Plan: per rollout an Index Scan of its partition's primary key. */
export async function selectCallMessages(
  pool: pg.Pool,
  rollouts: readonly { seq: string; day: string }[],
): Promise<Map<string, CallMessage[]>> {
  const { rows } = await pool.query<{ seq: string; messages: CallTuple[] | null }>({
    name: 'verify-messages',
    text: `SELECT h.seq::text, (
        SELECT json_agg(json_build_array(m.index, m.type, m.name, m.call_id, m.reward, m.is_finished, CASE WHEN m.type = 'tool_call' THEN m.content END)
          ORDER BY m.index, m.event_id)
        FROM rollout_messages m WHERE m.day = h.day AND m.rollout_seq = h.seq AND m.type IN ('tool_call', 'tool_result')) AS messages
      FROM unnest($1::bigint[], $2::date[]) AS h(seq, day)`,
    values: [rollouts.map(({ seq }) => seq), rollouts.map(({ day }) => day)],
  });
  const messageOf = ([index, type, name, callId, reward, isFinished, content]: CallTuple): CallMessage => ({
    index,
    type,
    name,
    callId,
    reward,
    isFinished,
    content,
  });
  return new Map(rows.map(({ seq, messages }) => [seq, (messages ?? []).map(messageOf)]));
}

/** A session of the ledger. */
export interface SessionRow {
  sid: string;
  environment: string | null;
  /** JSON texts */
  task: string | null;
  recording: string | null;
  open: boolean;
}
const SESSION = `s.sid, s.environment, s.task, s.recording, s.ended_at IS NULL AS open`;

/** Plan: sessions_pkey. */
export async function selectNamedSessions(pool: pg.Pool, orgId: string, sids: readonly string[]): Promise<SessionRow[]> {
  const { rows } = await pool.query<SessionRow>({
    name: 'verify-named',
    text: `SELECT ${SESSION} FROM sessions s WHERE s.sid = ANY($1::text[]) AND s.org_id = $2`,
    values: [sids, orgId],
  });
  return rows;
}

/** Calls with one key that are read: those of sessions that belong to other rollouts too. */
const MAX_CALLS_READ = 5_000;

/** A call that some of the rollouts made, by which their sessions are found. */
export interface SearchedCall {
  tool: string;
  argsHash: string;
  /** Calls of the ledger that are looked at for it, the newest first. */
  limit: number;
}

export interface SessionWindow {
  orgId: string;
  environment: string;
  /** Calls in between, milliseconds since the epoch. */
  from: number;
  to: number;
  /** Most sessions. */
  limit: number;
}

/**
 * Sessions in which one of these calls ran and that belong to no rollout but those of `batch`, the latest first. A session's own recording
 * leaves it to the upload of the trainer. Plan: per call an Index Scan Backward using session_calls_match_idx, at most `MAX_CALLS_READ` rows; per row of it
 * sessions_pkey and one probe of rollout_meta_sid_idx. What other sessions there are does not matter. Subqueries with LIMIT, because PostgreSQL
 * joined all rows of the tables instead.
 */
export async function selectSessionsByCalls(
  pool: pg.Pool,
  window: SessionWindow,
  calls: readonly SearchedCall[],
  batch: readonly string[],
): Promise<SessionRow[]> {
  const { rows } = await pool.query<SessionRow>({
    name: 'verify-sessions',
    text: `SELECT ${SESSION} FROM sessions s WHERE s.sid = ANY(ARRAY(
        SELECT DISTINCT called.sid FROM unnest($5::text[], $6::text[], $7::int[]) AS k(tool, args_hash, most)
        CROSS JOIN LATERAL (SELECT c.sid FROM (SELECT n.sid, n.started_at FROM session_calls n
            WHERE n.match_key = ${matchKey('$1::text', '$2::text', 'k.tool', 'k.args_hash')} AND n.started_at BETWEEN to_timestamp($3::float8 / 1000) AND to_timestamp($4::float8 / 1000)
            ORDER BY n.started_at DESC LIMIT ${MAX_CALLS_READ}) c
          JOIN LATERAL (SELECT * FROM sessions WHERE sid = c.sid LIMIT 1) x ON true
          WHERE x.org_id = $1 AND (SELECT true FROM rollout_meta m JOIN rollout_heads h ON h.seq = m.rollout_seq WHERE m.sid = x.sid AND m.rollout_seq <> ALL($8::bigint[])
              AND h.org_id::text = x.org_id AND (x.recording IS NULL OR position(h.id::text IN x.recording) = 0) LIMIT 1) IS NULL
          ORDER BY c.started_at DESC LIMIT k.most) called))
      ORDER BY s.created_at DESC LIMIT $9`,
    values: [
      window.orgId,
      window.environment,
      window.from,
      window.to,
      calls.map(({ tool }) => tool),
      calls.map(({ argsHash }) => argsHash),
      calls.map(({ limit }) => limit),
      batch,
      window.limit,
    ],
  });
  return rows;
}

export interface LedgerRow {
  sid: string;
  seq: string;
  task_id: string;
  tool: string;
  input: string;
  reward: number | null;
  finished: boolean | null;
  failure_class: string | null;
  duration_ms: number | null;
  ended_at: number | null;
}

/**
 * Calls of episodes in their order, at most `bytes` of inputs. Sessions at the end of the list may lack calls; the caller skips them. Plan:
 * per session an Index Scan using session_calls_sid_seq_idx.
 */
export async function selectLedger(pool: pg.Pool, sids: readonly string[], bytes: number): Promise<{ rows: LedgerRow[]; cut: boolean }> {
  const { rows } = await pool.query<LedgerRow & { whole: boolean }>({
    name: 'verify-ledger',
    text: `SELECT sid, seq, task_id, tool, input, reward, finished, failure_class, extract(epoch FROM ended_at - started_at)::float8 * 1000 AS duration_ms,
        extract(epoch FROM ended_at)::float8 * 1000 AS ended_at, bytes_before < $2 AS whole
      FROM (SELECT c.*, sum(octet_length(c.input)) OVER (ORDER BY a.position, c.seq) - octet_length(c.input) AS bytes_before, a.position
        FROM unnest($1::text[]) WITH ORDINALITY AS a(sid, position) JOIN session_calls c ON c.sid = a.sid
        WHERE c.kind = 'call' AND NOT (c.state = 'refused' AND position('"code":"call_abandoned"' IN COALESCE(c.result, '')) > 0)) c
      WHERE bytes_before < 2 * $2 ORDER BY position, seq`,
    values: [sids, bytes],
  });
  const whole = rows.filter((row) => row.whole);
  return { rows: whole, cut: whole.length < rows.length };
}

/** The result for one rollout. */
export interface VerifiedRollout {
  seq: string;
  revision: number;
  /** Code of the verdict (vocabulary-codes.ts); null keeps the known verdict and only schedules the next check. */
  verdict: number | null;
  sid: string | null;
  latency_ms: number | null;
  /** The telemetry bits of the provenance, at their position. */
  telemetry: number;
  rule: string | null;
  /** The rollout failed through the environment or the infrastructure. */
  failure_class: string | null;
  /** Task of its session; null = not known. */
  ledger_task: { split: string | null; index: number } | { ambiguous: true } | null;
  /** Seconds until the next check; null = none. */
  again_s: number | null;
  calls: { index: number; ledger_seq: number; tool: string; duration_ms: number | null; failure_class: string | null }[];
}

/** The upload names the task of the session itself. */
const SAME_TASK = `COALESCE((f.ledger_task->>'index')::int = o.task_index AND f.ledger_task->>'split' IS NOT DISTINCT FROM o.split, false)`;

/**
 * Writes verdicts for rollouts that did not change since they were read. Locks rows in the order of deriving, and leaves heads that ingest
 * holds for the next round. A rollout with an infrastructure failure or whose session
 * tells its task is derived again, because that changes its reward or its group. Plan: primary keys throughout.
 */
const WRITE = `
WITH fact AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS f(seq bigint, revision int, verdict smallint, sid text, latency_ms real, telemetry int, rule text, failure_class text,
    ledger_task jsonb, again_s float8, calls jsonb)
), old AS MATERIALIZED (
  SELECT seq, run_seq, phase, step, split, task_index FROM rollouts WHERE seq = ANY(ARRAY(SELECT seq FROM fact)) ORDER BY seq FOR UPDATE
), free AS MATERIALIZED (
  SELECT h.seq, f.verdict IS NOT NULL AND (f.failure_class IS DISTINCT FROM h.failure_class
    OR (m.ledger_task IS DISTINCT FROM f.ledger_task AND NOT (m.ledger_task IS NULL AND ${SAME_TASK}))) AS changed
  FROM rollout_heads h JOIN fact f ON f.seq = h.seq AND f.revision = h.revision JOIN old o ON o.seq = h.seq
  LEFT JOIN rollout_meta m ON m.rollout_seq = h.seq FOR UPDATE OF h SKIP LOCKED
), looked AS (
  UPDATE rollout_heads h SET unverified = f.again_s IS NOT NULL, verify_at = now() + COALESCE(f.again_s, 0) * interval '1 s',
    verdict = COALESCE(f.verdict, h.verdict), failure_class = CASE WHEN f.verdict IS NOT NULL THEN f.failure_class ELSE h.failure_class END,
    dirty = h.dirty OR free.changed, revision = h.revision + free.changed::int
  FROM fact f JOIN free USING (seq) WHERE h.seq = f.seq RETURNING h.seq
), known AS MATERIALIZED (
  SELECT f.*, o.run_seq, o.phase, o.step FROM fact f JOIN looked USING (seq) JOIN old o USING (seq) WHERE f.verdict IS NOT NULL
), written AS (
  UPDATE rollouts r SET latency_ms = k.latency_ms, provenance = (r.provenance & ~$2::int) | k.telemetry
  FROM known k WHERE r.seq = k.seq AND (r.latency_ms, r.provenance & $2::int) IS DISTINCT FROM (k.latency_ms, k.telemetry)
), labelled AS (
  UPDATE rollout_meta m SET sid = k.sid, ledger_task = k.ledger_task, telemetry_rule = k.rule
  FROM known k WHERE m.rollout_seq = k.seq AND (m.sid, m.ledger_task, m.telemetry_rule) IS DISTINCT FROM (k.sid, k.ledger_task, k.rule)
), call AS MATERIALIZED (
  SELECT k.seq, k.sid, x.* FROM known k CROSS JOIN LATERAL jsonb_to_recordset(k.calls) AS x(index int, ledger_seq bigint, tool text, duration_ms real, failure_class text)
), gone AS (
  DELETE FROM rollout_calls c USING known k WHERE c.rollout_seq = k.seq AND NOT EXISTS (SELECT FROM call n WHERE n.seq = c.rollout_seq AND n.index = c.index)
  RETURNING c.rollout_seq
), timed AS (
  INSERT INTO rollout_calls (rollout_seq, index, ledger_seq, sid, tool, duration_ms, failure_class)
  SELECT seq, index, ledger_seq, sid, tool, duration_ms, failure_class FROM call ORDER BY seq, index
  ON CONFLICT (rollout_seq, index) DO UPDATE SET ledger_seq = excluded.ledger_seq, sid = excluded.sid, tool = excluded.tool,
    duration_ms = excluded.duration_ms, failure_class = excluded.failure_class
), marked AS (
  INSERT INTO dirty_steps (run_seq, phase, step)
  SELECT DISTINCT run_seq, phase, COALESCE(step, -1) FROM known k WHERE k.calls <> '[]' OR EXISTS (SELECT FROM gone WHERE gone.rollout_seq = k.seq)
)
SELECT count(*)::int AS looked FROM looked`;

/** `mask`: the telemetry bits of the provenance. Returns how many were written. */
export async function writeVerdicts(pool: pg.Pool, facts: readonly VerifiedRollout[], mask: number): Promise<number> {
  const { rows } = await pool.query<{ looked: number }>({ name: 'verify-write', text: WRITE, values: [JSON.stringify(facts), mask] });
  return rows[0]!.looked;
}

export async function verifyLater(pool: pg.Pool, seq: string, seconds: number): Promise<void> {
  await pool.query(`UPDATE rollout_heads SET verify_at = now() + $2 * interval '1 s' WHERE seq = $1`, [seq, seconds]);
}
