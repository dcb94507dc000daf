import type pg from 'pg';
import { MicroBatcher, newTaskId } from '@palestra/kit';
import type { CallIntent, CallLedger, CallOutcome, CallRecord, CallResult, IntentAnswer } from '@palestra/session';
import { isDatabaseAway } from '../platform/database-errors.ts';
import { patiently } from '../platform/database-retry.ts';
import { withoutNul } from './postgres-text.ts';

/**
 * The call ledger in PostgreSQL. All intents of a moment go in one statement, so do all results. They commit asynchronously:
 * they must survive a crash of the API, not of PostgreSQL (design.md section 3), and waiting for the disk would cost each call
 * more than everything else together. Plans: `Insert on session_calls <- Function Scan on unnest`; for results a nested loop of
 * `Function Scan on unnest -> Index Scan using session_calls_pkey`.
 */
const ASYNCHRONOUS = `WITH commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;

/** How long a client may take to come back for a call whose stream broke. The official one gives up after six attempts, half a minute each. */
const JOIN_WINDOW = `interval '120 s'`;
/** An equal call that another process began, or ended, longer ago than this is not the one that a client asks for again. */
const DOUBT_WINDOW = `interval '10 s'`;

/**
 * Decides and stores (docs/adr/0007): a call of a session that has ended, or that another process owns, is `moved`; one that equals a
 * broken call is that call's client, which uses the mark up; one that equals the session's last call, on another process, just now,
 * is in `doubt`; every other one begins. Plan: nested loops of `Function Scan on unnest` with sessions_pkey, with the few rows of
 * session_calls_broken_idx, and with one row of session_calls_sid_seq_idx.
 */
const INTENT = `
  ${ASYNCHRONOUS},
  asked AS MATERIALIZED (
    SELECT n.*, s.sid IS NULL OR s.ended_at IS NOT NULL
      OR (s.owner_replica_id IS NOT NULL AND s.owner_replica_id <> n.replica_id) AS moved
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::bool[])
      AS n(task_id, sid, kind, tool, input, replica_id, started_at, sure)
    LEFT JOIN sessions AS s ON s.sid = n.sid),
  again AS (
    UPDATE session_calls AS c SET broken_at = NULL, joined_by = m.asked
    FROM (SELECT DISTINCT ON (a.task_id) a.task_id AS asked, b.task_id
          FROM asked AS a JOIN session_calls AS b
            ON b.sid = a.sid AND b.broken_at > now() - ${JOIN_WINDOW} AND b.kind = a.kind AND b.tool = a.tool AND b.input = a.input
          WHERE NOT a.moved ORDER BY a.task_id, b.seq) AS m
    WHERE c.task_id = m.task_id AND c.broken_at IS NOT NULL
    RETURNING m.asked, c.task_id),
  verdicts AS MATERIALIZED (
    SELECT a.*, again.task_id AS joined, l.task_id AS doubted, l.replica_id AS doubted_replica_id
    FROM asked AS a
    LEFT JOIN again ON again.asked = a.task_id
    LEFT JOIN LATERAL (
      SELECT c.* FROM session_calls AS c WHERE c.sid = a.sid ORDER BY c.seq DESC LIMIT 1
    ) AS l ON NOT a.sure AND l.replica_id <> a.replica_id AND l.kind = a.kind AND l.tool = a.tool AND l.input = a.input
      AND (l.ended_at IS NULL OR l.ended_at > now() - ${DOUBT_WINDOW})),
  begun AS (
    INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, started_at, state)
    SELECT task_id, sid, kind, tool, input, replica_id, to_timestamp(started_at / 1000), 'running'
    FROM verdicts, commit WHERE NOT moved AND joined IS NULL AND doubted IS NULL
    ON CONFLICT (task_id) DO NOTHING)
  SELECT task_id, moved, joined, doubted, doubted_replica_id FROM verdicts
  WHERE moved OR joined IS NOT NULL OR doubted IS NOT NULL`;

/**
 * Of posts whose intent may have been decided though its answer was lost, those that had become the client of a broken call: asking again
 * would find its mark used up and begin another call. Plan: nested loop of unnest with session_calls_sid_seq_idx.
 */
const JOINED = `
  SELECT c.joined_by AS task_id, false AS moved, c.task_id AS joined, NULL AS doubted, NULL AS doubted_replica_id
  FROM unnest($1::text[], $2::text[]) AS n(task_id, sid) JOIN session_calls AS c ON c.sid = n.sid AND c.joined_by = n.task_id`;

/** Writes again what a crash of PostgreSQL may have swallowed, and for the first time what was noted and takes long. */
const REWRITE = `
  ${ASYNCHRONOUS}
  INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, started_at, state)
  SELECT n.task_id, n.sid, n.kind, n.tool, n.input, n.replica_id, to_timestamp(n.started_at / 1000), 'running'
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[])
    AS n(task_id, sid, kind, tool, input, replica_id, started_at)
  ON CONFLICT (task_id) DO NOTHING`;

const RESULT = `
  ${ASYNCHRONOUS}
  UPDATE session_calls AS c SET
    state = n.state, result = n.result, ok = n.ok, reason = n.reason, reward = n.reward, finished = n.finished,
    failure_class = n.failure_class, ended_at = to_timestamp(n.ended_at / 1000)
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::float8[], $7::bool[], $8::text[], $9::float8[])
    AS n(task_id, state, result, ok, reason, reward, finished, failure_class, ended_at)
  WHERE c.task_id = n.task_id AND c.ended_at IS NULL`;

/**
 * Calls that were noted, with their outcomes: one row each, in the order in which they ended, which is that of their sessions. Some took so
 * long that they are there already. Plan: Insert on session_calls <- Function Scan on unnest.
 */
const WHOLE = `
  ${ASYNCHRONOUS}
  INSERT INTO session_calls AS c (task_id, sid, kind, tool, input, replica_id, started_at, state, result, ok, reason, reward, finished, failure_class, ended_at)
  SELECT n.task_id, n.sid, n.kind, n.tool, n.input, n.replica_id, to_timestamp(n.started_at / 1000), n.state, n.result, n.ok, n.reason, n.reward,
    n.finished, n.failure_class, to_timestamp(n.ended_at / 1000)
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[],
      $8::text[], $9::text[], $10::bool[], $11::text[], $12::float8[], $13::bool[], $14::text[], $15::float8[])
    AS n(task_id, sid, kind, tool, input, replica_id, started_at, state, result, ok, reason, reward, finished, failure_class, ended_at)
  ON CONFLICT (task_id) DO UPDATE SET state = excluded.state, result = excluded.result, ok = excluded.ok, reason = excluded.reason,
    reward = excluded.reward, finished = excluded.finished, failure_class = excluded.failure_class, ended_at = excluded.ended_at
  WHERE c.ended_at IS NULL`;

const UPSTREAM = `
  ${ASYNCHRONOUS}
  UPDATE session_calls AS c SET upstream_task_id = n.upstream_task_id
  FROM commit, unnest($1::text[], $2::text[]) AS n(task_id, upstream_task_id)
  WHERE c.task_id = n.task_id`;

const COLUMNS = `task_id, seq, sid, kind, tool, input, replica_id, upstream_task_id, state, result, ok, reason, reward, finished, failure_class,
  extract(epoch from started_at) * 1000 AS started_at, extract(epoch from ended_at) * 1000 AS ended_at`;

const FIND = `SELECT ${COLUMNS} FROM session_calls WHERE task_id = $1`;
/** Index Scan using session_calls_sid_seq_idx. */
const JOURNAL = `SELECT ${COLUMNS} FROM session_calls
  WHERE sid = $1 AND kind = 'call' AND state IN ('result', 'tool_failed') ORDER BY seq LIMIT $2`;
const COPY = `
  INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, state, result, ok, reason, reward, finished, failure_class, started_at, ended_at)
  SELECT n.task_id, $1, c.kind, c.tool, c.input, c.replica_id, c.state, c.result, c.ok, c.reason, c.reward, c.finished, c.failure_class, c.started_at, c.ended_at
  FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS n(task_id, original, ord)
  JOIN session_calls AS c ON c.task_id = n.original ORDER BY n.ord`;
const BROKEN = `UPDATE session_calls SET broken_at = now() WHERE task_id = ANY($1::text[])`;

/** A mark that was used up before the crash is not set again. */
const BROKEN_AGAIN = `UPDATE session_calls SET broken_at = now() WHERE task_id = ANY($1::text[]) AND broken_at IS NULL AND joined_by IS NULL`;
/** Index Scan using session_calls_pkey. */
const RESUMED = `UPDATE session_calls SET broken_at = NULL WHERE task_id = $1 AND broken_at IS NOT NULL`;

const TAKE_OVER = `UPDATE session_calls SET replica_id = $3 WHERE task_id = $1 AND replica_id = $2`;

interface Row {
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

function toOutcome(row: Row): CallOutcome | null {
  if (row.state === 'running' || row.result === null) return null;
  if (row.state !== 'result') return JSON.parse(row.result) as CallOutcome;
  const { ok, reason, reward, finished } = row;
  return { type: 'result', text: row.result, ok: ok === true, reason, reward, finished: finished === true };
}

/** The columns of an outcome; results keep their JSON text as it is, failures become one. */
function outcomeColumns(outcome: CallOutcome) {
  if (outcome.type !== 'result') return { result: JSON.stringify(outcome), ok: null, reason: null, reward: null, finished: null };
  const { text, ok, reason, reward, finished } = outcome;
  return { result: withoutNul(text), ok, reason: reason === null ? null : withoutNul(reason), reward, finished };
}

function toRecord(row: Row): CallRecord {
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

/** One statement of a kind at a time: what comes meanwhile makes the next one larger, and waking PostgreSQL is what costs. */
const BATCH = { maxItems: 256, maxAgeMs: 0, maxQueued: 50_000, concurrency: 1 };
/** What nobody waits for is collected: a crash of the API in between leaves its calls as if it had come that much earlier. */
const LATER = { ...BATCH, maxAgeMs: 10 };
/** A noted call that has not ended within this (and twice this at most) is written as one that runs: whoever watches the session sees it. */
const NOTED_MS = 100;
/** Ended calls that wait to be written; beyond it calls wait for PostgreSQL again. */
const MAX_BEHIND = 4 * BATCH.maxItems;
const MAX_JOURNAL = 100_000;
/**
 * After PostgreSQL may have crashed: by then every process has noticed and has written again what it knows of calls that run (it confirms once
 * a second). Until then a post that equals a call which the crash swallowed would look like a new one.
 */
const SETTLE_AFTER_CRASH_MS = 2_500;
/** A result outlives a long absence of PostgreSQL in memory; its client has it already. */
const RESULT_PATIENCE_MS = 600_000;

interface Verdict {
  task_id: string;
  moved: boolean;
  joined: string | null;
  doubted: string | null;
  doubted_replica_id: string | null;
}

/** What has been written since PostgreSQL last confirmed that everything before is on its disk. */
interface Unconfirmed {
  intents: CallIntent[];
  upstreams: [string, string][];
  results: CallResult[];
  broken: string[];
}
/** A call that nobody can come back for, until it has ended. */
interface Noted {
  call: CallIntent;
  /** The last one before it was noted. */
  look: number;
  /** Settles when it is in the table as one that runs; null = it is in memory alone. */
  written: Promise<void> | null;
}
const nothing = (): Unconfirmed => ({ intents: [], upstreams: [], results: [], broken: [] });

export class SqlCallLedger implements CallLedger {
  readonly #pool: pg.Pool;
  readonly #intents: MicroBatcher<{ call: CallIntent; sure: boolean }, IntentAnswer>;
  readonly #results: MicroBatcher<CallResult, void>;
  readonly #noted = new Map<string, Noted>();
  #notedTimer: NodeJS.Timeout | null = null;
  #look = 0;
  readonly #wholes: MicroBatcher<{ call: CallIntent; result: CallResult }, void>;
  readonly #upstreams: MicroBatcher<[string, string], void>;
  /** Calls whose upstream id waits to be written, and that have not ended. */
  readonly #unended = new Set<string>();
  readonly #broken: MicroBatcher<string, void>;
  #unconfirmed = nothing();
  #mayHaveCrashed = false;
  /** Monotonic time before which no new call begins. */
  #settledAt = 0;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#intents = new MicroBatcher({ ...BATCH, flush: (calls) => this.#writeIntents(calls) });
    this.#results = new MicroBatcher({ ...LATER, flush: (results) => this.#writeResults(results) });
    this.#wholes = new MicroBatcher({ ...LATER, flush: (ended) => this.#writeWholes(ended) });
    this.#upstreams = new MicroBatcher({ ...LATER, flush: (ids) => this.#writeUpstreams(ids) });
    this.#broken = new MicroBatcher({ ...BATCH, flush: (taskIds) => this.#writeBroken(taskIds) });
    pool.on('error', () => this.#suspectCrash());
  }

  intent(call: CallIntent, sure: boolean): Promise<IntentAnswer> {
    return this.#intents.add({ call, sure });
  }

  note(call: CallIntent): boolean {
    if (this.#wholes.waiting >= MAX_BEHIND) return false;
    this.#noted.set(call.taskId, { call, look: this.#look, written: null });
    this.#notedTimer ??= setTimeout(() => this.#lookAtNoted(), NOTED_MS);
    return true;
  }

  async upstream(taskId: string, upstreamTaskId: string): Promise<void> {
    if (this.#noted.has(taskId)) return;
    this.#unended.add(taskId);
    return this.#upstreams.add([taskId, upstreamTaskId]);
  }

  async result(result: CallResult, soon: boolean): Promise<void> {
    this.#unended.delete(result.taskId);
    const noted = this.#noted.get(result.taskId);
    if (noted === undefined) return this.#results.add(result, soon);
    this.#noted.delete(result.taskId);
    // Never two statements with one row at the same time: they would wait for each other's.
    if (noted.written !== null) await noted.written;
    return this.#wholes.add({ call: noted.call, result }, soon);
  }

  broken(taskId: string): Promise<void> {
    return this.#broken.add(taskId);
  }

  async resumed(taskId: string): Promise<void> {
    // Marks that are on their way come first.
    await this.#broken.drain();
    this.#unconfirmed.broken = this.#unconfirmed.broken.filter((marked) => marked !== taskId);
    await this.#query('call_resumed', RESUMED, [taskId]);
  }

  async find(taskId: string): Promise<CallRecord | null> {
    const rows = await this.#query<Row>('call_find', FIND, [withoutNul(taskId)]);
    return rows[0] === undefined ? null : toRecord(rows[0]);
  }

  async journal(sid: string, limit = MAX_JOURNAL): Promise<CallRecord[]> {
    return (await this.#query<Row>('call_journal', JOURNAL, [sid, limit])).map(toRecord);
  }

  async copy(calls: CallRecord[], sid: string): Promise<void> {
    await this.#query('call_copy', COPY, [sid, calls.map(() => newTaskId()), calls.map(({ taskId }) => taskId)]);
  }

  async takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean> {
    const { rowCount } = await patiently(() =>
      this.#pool.query({ name: 'call_take_over', text: TAKE_OVER, values: [taskId, fromReplicaId, toReplicaId] }),
    );
    return rowCount === 1;
  }

  async drain(): Promise<void> {
    if (this.#notedTimer !== null) clearTimeout(this.#notedTimer);
    this.#notedTimer = null;
    this.#writeNoted([...this.#noted.values()].filter(({ written }) => written === null));
    await Promise.all([...this.#noted.values()].flatMap(({ written }) => written ?? []));
    await Promise.all([this.#intents, this.#results, this.#wholes, this.#upstreams, this.#broken].map((queue) => queue.drain()));
  }

  /**
   * Runs `commit`, which waits for the disk: what was written before it is safe afterwards. Writes everything of late once more when
   * PostgreSQL may have crashed in between.
   */
  async confirm(commit: () => Promise<void>): Promise<void> {
    const before = this.#unconfirmed;
    this.#unconfirmed = nothing();
    try {
      if (this.#mayHaveCrashed) {
        this.#mayHaveCrashed = false;
        await this.#rewrite(before);
      }
      await commit();
    } catch (error) {
      this.#mayHaveCrashed = true;
      const { intents, upstreams, results, broken } = this.#unconfirmed;
      this.#unconfirmed = {
        intents: [...before.intents, ...intents],
        upstreams: [...before.upstreams, ...upstreams],
        results: [...before.results, ...results],
        broken: [...before.broken, ...broken],
      };
      throw error;
    }
  }

  #suspectCrash(): void {
    this.#mayHaveCrashed = true;
    this.#settledAt = performance.now() + SETTLE_AFTER_CRASH_MS;
  }

  async #rewrite({ intents, upstreams, results, broken }: Unconfirmed): Promise<void> {
    if (intents.length > 0) await this.#query('call_rewrite', REWRITE, intentColumns(intents));
    if (upstreams.length > 0) await this.#query('call_upstream', UPSTREAM, upstreamColumns(upstreams));
    if (results.length > 0) await this.#query('call_result', RESULT, resultColumns(results));
    if (broken.length > 0) await this.#query('call_broken_again', BROKEN_AGAIN, [broken.toSorted()]);
  }

  async #writeIntents(asked: { call: CallIntent; sure: boolean }[]): Promise<IntentAnswer[]> {
    const rows = await this.#decide(asked);
    const verdicts = new Map(rows.map((row) => [row.task_id, row]));
    return asked.map(({ call }) => {
      const verdict = verdicts.get(call.taskId);
      if (verdict !== undefined) return toAnswer(verdict);
      this.#unconfirmed.intents.push(call);
      return { verdict: 'begun' };
    });
  }

  /** A statement whose answer was lost may have been carried out: then what it decided stands. */
  async #decide(asked: { call: CallIntent; sure: boolean }[]): Promise<Verdict[]> {
    let attempts = 0;
    return patiently(async () => {
      attempts += 1;
      try {
        await this.#settled();
        const calls = asked.map(({ call }) => call);
        const joined = attempts === 1 ? [] : await this.#ask('call_joined', JOINED, [calls.map((c) => c.taskId), calls.map((c) => c.sid)]);
        const done = new Set(joined.map((row) => row.task_id));
        const open = asked.filter(({ call }) => !done.has(call.taskId));
        const columns = [...intentColumns(open.map(({ call }) => call)), open.map(({ sure }) => sure)];
        return [...joined, ...(await this.#ask('call_intent', INTENT, columns))];
      } catch (error) {
        if (isDatabaseAway(error)) this.#suspectCrash();
        throw error;
      }
    });
  }

  async #ask(name: string, text: string, values: unknown[]): Promise<Verdict[]> {
    return (await this.#pool.query<Verdict>({ name, text, values })).rows;
  }

  async #settled(): Promise<void> {
    for (let left = this.#settledAt - performance.now(); left > 0; left = this.#settledAt - performance.now()) {
      await new Promise((resolve) => setTimeout(resolve, left));
    }
  }

  async #writeResults(results: CallResult[]): Promise<void[]> {
    const inOrder = results.toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1));
    await this.#query('call_result', RESULT, resultColumns(inOrder), RESULT_PATIENCE_MS);
    this.#unconfirmed.results.push(...results);
    return results.map(() => undefined);
  }

  /** Those that were there at the last look: most have ended long before, and are written once. */
  #lookAtNoted(): void {
    this.#look += 1;
    const open = [...this.#noted.values()].filter(({ written }) => written === null);
    this.#notedTimer = open.length > 0 ? setTimeout(() => this.#lookAtNoted(), NOTED_MS) : null;
    this.#writeNoted(open.filter(({ look }) => look < this.#look - 1));
  }

  #writeNoted(open: readonly Noted[]): void {
    if (open.length === 0) return;
    const calls = open.map(({ call }) => call);
    const written = this.#query('call_rewrite', REWRITE, intentColumns(calls)).then(
      () => void this.#unconfirmed.intents.push(...calls),
      // Its outcome is written with all that is known of it.
      () => {},
    );
    for (const noted of open) noted.written = written;
  }

  async #writeWholes(ended: { call: CallIntent; result: CallResult }[]): Promise<void[]> {
    const calls = ended.map(({ call }) => call);
    const results = ended.map(({ result }) => result);
    const [, ...outcomes] = resultColumns(results);
    await this.#query('call_whole', WHOLE, [...intentColumns(calls), ...outcomes], RESULT_PATIENCE_MS);
    this.#unconfirmed.intents.push(...calls);
    this.#unconfirmed.results.push(...results);
    return ended.map(() => undefined);
  }

  async #writeUpstreams(asked: [string, string][]): Promise<void[]> {
    // Whoever asks for a call that has ended gets its result: where it ran is of no use any more.
    const ids = asked.filter(([taskId]) => this.#unended.delete(taskId));
    if (ids.length > 0) {
      await this.#query('call_upstream', UPSTREAM, upstreamColumns(ids));
      this.#unconfirmed.upstreams.push(...ids);
    }
    return asked.map(() => undefined);
  }

  async #writeBroken(taskIds: string[]): Promise<void[]> {
    // In order, as results are: two statements that wait for each other's rows would deadlock, and a mark would be lost.
    await this.#query('call_broken', BROKEN, [taskIds.toSorted()]);
    this.#unconfirmed.broken.push(...taskIds);
    return taskIds.map(() => undefined);
  }

  #query<R extends object>(name: string, sql: string, values: unknown[], patienceMs?: number): Promise<R[]> {
    return patiently(async () => {
      try {
        return (await this.#pool.query<R & pg.QueryResultRow>({ name, text: sql, values })).rows;
      } catch (error) {
        if (isDatabaseAway(error)) this.#suspectCrash();
        throw error;
      }
    }, patienceMs);
  }
}

const intentColumns = (calls: CallIntent[]): unknown[] => [
  calls.map((call) => call.taskId),
  calls.map((call) => call.sid),
  calls.map((call) => call.kind),
  calls.map((call) => withoutNul(call.tool)),
  calls.map((call) => call.input),
  calls.map((call) => call.replicaId),
  calls.map((call) => call.startedAt),
];

const upstreamColumns = (ids: [string, string][]): unknown[] => [ids.map(([taskId]) => taskId), ids.map(([, upstream]) => upstream)];

function resultColumns(results: CallResult[]): unknown[] {
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

function toAnswer({ moved, joined, doubted, doubted_replica_id: replicaId }: Verdict): IntentAnswer {
  if (moved) return { verdict: 'moved' };
  if (joined !== null) return { verdict: 'join', taskId: joined };
  return { verdict: 'doubt', taskId: doubted!, replicaId: replicaId! };
}
