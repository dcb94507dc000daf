import type pg from 'pg';
import { MicroBatcher } from '@palestra/kit';
import type { CallIntent, CallLedger, CallOutcome, CallRecord, CallResult } from '@palestra/session';
import { asStoreError, withoutNul } from './store-errors.ts';

/**
 * The call ledger in PostgreSQL. All intents of a moment go in one statement, so do all results. They commit asynchronously:
 * they must survive a crash of the API, not of PostgreSQL (design.md section 3), and waiting for the disk would cost each call
 * more than everything else together. Plans: `Insert on session_calls <- Function Scan on unnest`; for results a nested loop of
 * `Function Scan on unnest -> Index Scan using session_calls_pkey`.
 */
const ASYNCHRONOUS = `WITH commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;

const INTENT = `
  ${ASYNCHRONOUS}
  INSERT INTO session_calls (task_id, sid, kind, tool, input, replica_id, started_at, state)
  SELECT n.task_id, n.sid, n.kind, n.tool, n.input, n.replica_id, to_timestamp(n.started_at / 1000), 'running'
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[])
    AS n(task_id, sid, kind, tool, input, replica_id, started_at)`;

const RESULT = `
  ${ASYNCHRONOUS}
  UPDATE session_calls AS c SET
    state = n.state, result = n.result, ok = n.ok, reason = n.reason, reward = n.reward, finished = n.finished,
    failure_class = n.failure_class, ended_at = to_timestamp(n.ended_at / 1000)
  FROM commit, unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::text[], $6::float8[], $7::bool[], $8::text[], $9::float8[])
    AS n(task_id, state, result, ok, reason, reward, finished, failure_class, ended_at)
  WHERE c.task_id = n.task_id AND c.ended_at IS NULL`;

const UPSTREAM = `
  ${ASYNCHRONOUS}
  UPDATE session_calls AS c SET upstream_task_id = n.upstream_task_id
  FROM commit, unnest($1::text[], $2::text[]) AS n(task_id, upstream_task_id)
  WHERE c.task_id = n.task_id`;

const FIND = `
  SELECT task_id, seq, sid, kind, tool, input, replica_id, upstream_task_id, state, result, ok, reason, reward, finished, failure_class,
    extract(epoch from started_at) * 1000 AS started_at, extract(epoch from ended_at) * 1000 AS ended_at
  FROM session_calls WHERE task_id = $1`;

const TAKE_OVER = `UPDATE session_calls SET replica_id = $3 WHERE task_id = $1 AND replica_id = $2 AND ended_at IS NULL`;

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

/** One statement of a kind at a time: what comes meanwhile makes the next one larger, and waking PostgreSQL is what costs. */
const BATCH = { maxItems: 256, maxAgeMs: 0, maxQueued: 50_000, concurrency: 1 };

export class SqlCallLedger implements CallLedger {
  readonly #pool: pg.Pool;
  readonly #intents: MicroBatcher<CallIntent, void>;
  readonly #results: MicroBatcher<CallResult, void>;
  readonly #upstreams: MicroBatcher<[string, string], void>;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#intents = new MicroBatcher({ ...BATCH, flush: (calls) => this.#writeIntents(calls) });
    this.#results = new MicroBatcher({ ...BATCH, flush: (results) => this.#writeResults(results) });
    this.#upstreams = new MicroBatcher({ ...BATCH, flush: (ids) => this.#writeUpstreams(ids) });
  }

  intent(call: CallIntent): Promise<void> {
    return this.#intents.add(call);
  }

  upstream(taskId: string, upstreamTaskId: string): Promise<void> {
    return this.#upstreams.add([taskId, upstreamTaskId]);
  }

  result(result: CallResult): Promise<void> {
    return this.#results.add(result);
  }

  async find(taskId: string): Promise<CallRecord | null> {
    const rows = (await this.#query<Row>('call_find', FIND, [withoutNul(taskId)])).rows;
    const row = rows[0];
    if (row === undefined) return null;
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

  async takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean> {
    return (await this.#query('call_take_over', TAKE_OVER, [taskId, fromReplicaId, toReplicaId])).rowCount === 1;
  }

  async drain(): Promise<void> {
    await Promise.all([this.#intents.drain(), this.#results.drain(), this.#upstreams.drain()]);
  }

  async #writeIntents(calls: CallIntent[]): Promise<void[]> {
    await this.#query('call_intent', INTENT, [
      calls.map((call) => call.taskId),
      calls.map((call) => call.sid),
      calls.map((call) => call.kind),
      calls.map((call) => withoutNul(call.tool)),
      calls.map((call) => call.input),
      calls.map((call) => call.replicaId),
      calls.map((call) => call.startedAt),
    ]);
    return calls.map(() => undefined);
  }

  async #writeResults(results: CallResult[]): Promise<void[]> {
    const columns = results.map(({ outcome }) => outcomeColumns(outcome));
    await this.#query('call_result', RESULT, [
      results.map((result) => result.taskId),
      results.map((result) => result.outcome.type),
      columns.map((column) => column.result),
      columns.map((column) => column.ok),
      columns.map((column) => column.reason),
      columns.map((column) => column.reward),
      columns.map((column) => column.finished),
      results.map((result) => result.failureClass),
      results.map((result) => result.endedAt),
    ]);
    return results.map(() => undefined);
  }

  async #writeUpstreams(ids: [string, string][]): Promise<void[]> {
    await this.#query('call_upstream', UPSTREAM, [ids.map(([taskId]) => taskId), ids.map(([, upstream]) => upstream)]);
    return ids.map(() => undefined);
  }

  async #query<R extends object>(name: string, sql: string, values: unknown[]): Promise<pg.QueryResult<R & pg.QueryResultRow>> {
    try {
      return await this.#pool.query<R & pg.QueryResultRow>({ name, text: sql, values });
    } catch (error) {
      throw asStoreError(error);
    }
  }
}
