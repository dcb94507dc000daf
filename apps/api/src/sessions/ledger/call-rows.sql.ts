import type { CallIntent, CallOutcome, CallRecord, CallResult, BeginAnswer } from '@palestra/session';
import type { DeferredRow } from './deferred-calls.ts';
import { matchedArgs, matchKey } from '../../store/derive/verify/match-key.ts';
import { withoutNul } from './postgres-text.ts';

/**
 * The statements of the call ledger, and its rows. Intents that come together share one statement, and so do results. They commit
 * asynchronously: they must survive a crash of the API, not of PostgreSQL (docs/adr/0002-ledger-commits-asynchronously.md), and waiting for the
 * disk would cost each call more than everything else. Plans: `Insert on session_calls <- Function Scan on unnest`; for results a nested loop of
 * `Function Scan on unnest -> Index Scan using session_calls_pkey`.
 */
const ASYNCHRONOUS = `WITH commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;

/** Of a row `n`. A subquery and no join, so that rows keep their order. */
const MATCH_KEY = `(SELECT ${matchKey('s.org_id', 's.environment', 'n.tool', 'n.args_hash')} FROM sessions AS s WHERE s.sid = n.sid)`;

/** How long a client may take to return for an undelivered call. The official client gives up after six attempts of up to 30 s. */
const JOIN_WINDOW = `interval '120 s'`;
/** An equal call that another process ended longer ago than this is not the one that a client repeats. */
const DOUBT_WINDOW = `interval '10 s'`;

/**
 * Decides about intents and stores new calls (docs/adr/0007). `moved`: the session has ended or another process owns it. `joined`: it equals an
 * undelivered call, whose mark it uses up. `doubted`: it equals the last call of the session, which another process ran just now. `known`: its
 * idempotency key (`named`) has a row, unless this same intent wrote it and the answer was lost. Otherwise the call begins. A call with a key
 * is compared with no others. Plan: nested loops of `Function Scan on unnest` with sessions_pkey, with the few rows of
 * session_calls_broken_idx, and with one row of session_calls_sid_seq_idx.
 */
export const INTENT = `
  ${ASYNCHRONOUS},
  asked AS MATERIALIZED (
    SELECT n.*, ${matchKey('s.org_id', 's.environment', 'n.tool', 'n.args_hash')} AS match_key, s.sid IS NULL OR s.ended_at IS NOT NULL
      OR (s.owner_replica_id IS NOT NULL AND s.owner_replica_id <> n.replica_id) AS moved
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::text[],
        $9::bool[], $10::bool[])
      AS n(task_id, sid, kind, tool, input, replica_id, started_at, args_hash, sure, named)
    LEFT JOIN sessions AS s ON s.sid = n.sid),
  again AS (
    UPDATE session_calls AS c SET broken_at = NULL, joined_by = m.asked
    FROM (SELECT DISTINCT ON (a.task_id) a.task_id AS asked, b.task_id
          FROM asked AS a JOIN session_calls AS b
            ON b.sid = a.sid AND b.broken_at > now() - ${JOIN_WINDOW} AND b.kind = a.kind AND b.tool = a.tool AND b.input = a.input
          WHERE NOT a.moved AND NOT a.named ORDER BY a.task_id, b.seq) AS m
    WHERE c.task_id = m.task_id AND c.broken_at IS NOT NULL
    RETURNING m.asked, c.task_id),
  verdicts AS MATERIALIZED (
    SELECT a.*, again.task_id AS joined, l.task_id AS doubted, l.replica_id AS doubted_replica_id
    FROM asked AS a
    LEFT JOIN again ON again.asked = a.task_id
    LEFT JOIN LATERAL (
      SELECT c.* FROM session_calls AS c WHERE c.sid = a.sid ORDER BY c.seq DESC LIMIT 1
    ) AS l ON NOT a.sure AND NOT a.named AND l.replica_id <> a.replica_id AND l.kind = a.kind AND l.tool = a.tool AND l.input = a.input
      AND (l.ended_at IS NULL OR l.ended_at > now() - ${DOUBT_WINDOW})),
  begun AS (
    INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, started_at, state, match_key)
    SELECT task_id, sid, kind, tool, input, replica_id, to_timestamp(started_at / 1000), 'running', match_key
    FROM verdicts, commit WHERE NOT moved AND joined IS NULL AND doubted IS NULL
    ON CONFLICT (task_id) DO NOTHING RETURNING task_id),
  answers AS (
    SELECT v.*, v.named AND NOT v.moved AND b.task_id IS NULL AND NOT EXISTS (
      SELECT FROM session_calls AS k
      WHERE k.task_id = v.task_id AND k.replica_id = v.replica_id AND k.started_at = to_timestamp(v.started_at / 1000)) AS known
    FROM verdicts AS v LEFT JOIN begun AS b ON b.task_id = v.task_id)
  SELECT task_id, moved, known, joined, doubted, doubted_replica_id FROM answers
  WHERE moved OR known OR joined IS NOT NULL OR doubted IS NOT NULL`;

/**
 * Intents that have joined an undelivered call, for intents whose answer was lost: a second decision would find the mark used up and begin
 * another call. Plan: nested loop of unnest with session_calls_sid_seq_idx.
 */
export const JOINED = `
  SELECT c.joined_by AS task_id, false AS moved, false AS known, c.task_id AS joined, NULL AS doubted, NULL AS doubted_replica_id
  FROM unnest($1::text[], $2::text[]) AS n(task_id, sid) JOIN session_calls AS c ON c.sid = n.sid AND c.joined_by = n.task_id`;

/** Repeats intents that a crash of PostgreSQL may have lost. */
export const REWRITE = `
  ${ASYNCHRONOUS}
  INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, started_at, state, match_key)
  SELECT n.task_id, n.sid, n.kind, n.tool, n.input, n.replica_id, to_timestamp(n.started_at / 1000), 'running', ${MATCH_KEY}
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::text[])
    AS n(task_id, sid, kind, tool, input, replica_id, started_at, args_hash)
  ON CONFLICT (task_id) DO NOTHING`;

export const RESULT = `
  ${ASYNCHRONOUS}
  UPDATE session_calls AS c SET
    state = n.state, result = n.result, ok = n.ok, reason = n.reason, reward = n.reward, finished = n.finished,
    failure_class = n.failure_class, ended_at = to_timestamp(n.ended_at / 1000)
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::float8[], $7::bool[], $8::text[], $9::float8[])
    AS n(task_id, state, result, ok, reason, reward, finished, failure_class, ended_at)
  WHERE c.task_id = n.task_id AND c.ended_at IS NULL`;

/** Stores deferred calls with their outcomes, or as running, in the order in which they ended. Plan: Insert on session_calls <- Function Scan on unnest. */
export const DEFERRED = `
  ${ASYNCHRONOUS}
  INSERT INTO session_calls AS c
    (task_id, sid, kind, tool, input, replica_id, started_at, match_key, state, result, ok, reason, reward, finished, failure_class, ended_at)
  SELECT n.task_id, n.sid, n.kind, n.tool, n.input, n.replica_id, to_timestamp(n.started_at / 1000), ${MATCH_KEY}, n.state, n.result, n.ok, n.reason,
    n.reward, n.finished, n.failure_class, to_timestamp(n.ended_at / 1000)
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::text[], $9::text[],
      $10::text[], $11::bool[], $12::text[], $13::float8[], $14::bool[], $15::text[], $16::float8[])
    AS n(task_id, sid, kind, tool, input, replica_id, started_at, args_hash, state, result, ok, reason, reward, finished, failure_class, ended_at)
  ON CONFLICT (task_id) DO UPDATE SET state = excluded.state, result = excluded.result, ok = excluded.ok, reason = excluded.reason,
    reward = excluded.reward, finished = excluded.finished, failure_class = excluded.failure_class, ended_at = excluded.ended_at
  WHERE c.ended_at IS NULL`;

export const UPSTREAM = `
  ${ASYNCHRONOUS}
  UPDATE session_calls AS c SET upstream_task_id = n.upstream_task_id
  FROM commit, unnest($1::text[], $2::text[]) AS n(task_id, upstream_task_id)
  WHERE c.task_id = n.task_id`;

const COLUMNS = `task_id, seq, sid, kind, tool, input, replica_id, upstream_task_id, state, result, ok, reason, reward, finished, failure_class,
  extract(epoch from started_at) * 1000 AS started_at, extract(epoch from ended_at) * 1000 AS ended_at`;

export const FIND = `SELECT ${COLUMNS} FROM session_calls WHERE task_id = $1`;
/** Index Scan using session_calls_sid_seq_idx. */
export const JOURNAL = `SELECT ${COLUMNS} FROM session_calls
  WHERE sid = $1 AND kind = 'call' AND state IN ('result', 'tool_failed') ORDER BY seq LIMIT $2`;
export const COPY = `
  INSERT INTO session_calls
    (task_id, sid, kind, tool, input, replica_id, state, result, ok, reason, reward, finished, failure_class, started_at, ended_at, match_key)
  SELECT n.task_id, $1, c.kind, c.tool, c.input, c.replica_id, c.state, c.result, c.ok, c.reason, c.reward, c.finished, c.failure_class, c.started_at, c.ended_at,
    c.match_key
  FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS n(task_id, original, ord)
  JOIN session_calls AS c ON c.task_id = n.original ORDER BY n.ord`;
export const MARK_UNDELIVERED = `UPDATE session_calls SET broken_at = now() WHERE task_id = ANY($1::text[])`;

/** Does not repeat a mark that was used up before the crash. */
export const MARK_UNDELIVERED_AGAIN = `UPDATE session_calls SET broken_at = now() WHERE task_id = ANY($1::text[]) AND broken_at IS NULL AND joined_by IS NULL`;
/** Index Scan using session_calls_pkey. */
export const CLEAR_UNDELIVERED = `UPDATE session_calls SET broken_at = NULL WHERE task_id = $1 AND broken_at IS NOT NULL`;

export const TAKE_OVER = `UPDATE session_calls SET replica_id = $3 WHERE task_id = $1 AND replica_id = $2`;

export interface CallRow {
  task_id: string;
  seq: string;
  sid: string;
  kind: CallIntent['kind'];
  tool: string;
  input: string;
  replica_id: string;
  upstream_task_id: string | null;
  state: 'running' | CallOutcome['type'];
  result: string | null;
  ok: boolean | null;
  reason: string | null;
  reward: number | null;
  finished: boolean | null;
  failure_class: CallRecord['failureClass'];
  started_at: string;
  ended_at: string | null;
}

function toOutcome(row: CallRow): CallOutcome | null {
  if (row.state === 'running' || row.result === null) return null;
  if (row.state !== 'result') return JSON.parse(row.result) as CallOutcome;
  const { ok, reason, reward, finished } = row;
  return { type: 'result', text: row.result, ok: ok === true, reason, reward, finished: finished === true };
}

/** The columns of an outcome. A result keeps its JSON text, a failure is written as JSON. */
function outcomeColumns(outcome: CallOutcome) {
  if (outcome.type !== 'result') return { result: JSON.stringify(outcome), ok: null, reason: null, reward: null, finished: null };
  const { text, ok, reason, reward, finished } = outcome;
  return { result: withoutNul(text), ok, reason: reason === null ? null : withoutNul(reason), reward, finished };
}

export function toRecord(row: CallRow): CallRecord {
  return {
    taskId: row.task_id,
    seq: Number(row.seq),
    sid: row.sid,
    kind: row.kind,
    tool: row.tool,
    input: row.input,
    replicaId: row.replica_id,
    upstreamTaskId: row.upstream_task_id,
    outcome: toOutcome(row),
    failureClass: row.failure_class,
    startedAt: Number(row.started_at),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
  };
}

export interface Verdict {
  task_id: string;
  moved: boolean;
  known: boolean;
  joined: string | null;
  doubted: string | null;
  doubted_replica_id: string | null;
}

export const intentColumns = (calls: CallIntent[]): unknown[] => [
  calls.map((call) => call.taskId),
  calls.map((call) => call.sid),
  calls.map((call) => call.kind),
  calls.map((call) => withoutNul(call.tool)),
  calls.map((call) => call.input),
  calls.map((call) => call.replicaId),
  calls.map((call) => call.startedAt),
  calls.map((call) => (call.kind === 'call' ? matchedArgs(call.input) : null)),
];

export const upstreamColumns = (ids: [string, string][]): unknown[] => [ids.map(([taskId]) => taskId), ids.map(([, upstream]) => upstream)];

export function resultColumns(results: CallResult[]): unknown[] {
  const columns = results.map(({ outcome }) => outcomeColumns(outcome));
  return [
    results.map((result) => result.taskId),
    results.map((result) => result.outcome.type),
    columns.map((column) => column.result),
    columns.map((column) => column.ok),
    columns.map((column) => column.reason),
    columns.map((column) => column.reward),
    columns.map((column) => column.finished),
    results.map((result) => result.failureClass),
    results.map((result) => result.endedAt),
  ];
}

export function deferredColumns(rows: DeferredRow[]): unknown[] {
  const columns = rows.map(({ end }) => (end === null ? null : outcomeColumns(end.outcome)));
  return [
    ...intentColumns(rows.map(({ call }) => call)),
    rows.map(({ end }) => end?.outcome.type ?? 'running'),
    columns.map((column) => column?.result ?? null),
    columns.map((column) => column?.ok ?? null),
    columns.map((column) => column?.reason ?? null),
    columns.map((column) => column?.reward ?? null),
    columns.map((column) => column?.finished ?? null),
    rows.map(({ end }) => end?.failureClass ?? null),
    rows.map(({ end }) => end?.endedAt ?? null),
  ];
}

export function toAnswer({ moved, known, joined, doubted, doubted_replica_id: replicaId }: Verdict): BeginAnswer {
  if (moved) return { verdict: 'moved' };
  if (known) return { verdict: 'repeated' };
  if (joined !== null) return { verdict: 'join', taskId: joined };
  return { verdict: 'uncertain', taskId: doubted!, replicaId: replicaId! };
}
