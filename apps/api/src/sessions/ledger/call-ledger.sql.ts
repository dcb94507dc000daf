import type pg from 'pg';
import { MicroBatcher, newTaskId } from '@palestra/kit';
import type { CallIntent, CallLedger, CallRecord, CallResult, DeferredCall, BeginAnswer } from '@palestra/session';
import { isDatabaseUnavailable, isRefusedValue } from '../../platform/database/database-errors.ts';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import {
  type CallRow,
  COPY,
  DEFERRED,
  deferredColumns,
  FIND,
  INTENT,
  intentColumns,
  JOINED,
  CLEAR_UNDELIVERED,
  JOURNAL,
  MARK_UNDELIVERED,
  MARK_UNDELIVERED_AGAIN,
  RESULT,
  resultColumns,
  REWRITE,
  TAKE_OVER,
  toAnswer,
  toRecord,
  UPSTREAM,
  upstreamColumns,
  type Verdict,
} from './call-rows.sql.ts';
import { DeferredCalls, type DeferredRow, latestPerCall } from './deferred-calls.ts';
import { withoutNul } from './postgres-text.ts';

/** Statements of a kind run one at a time, and requests meanwhile share the next one: the cost is per statement, not per row. */
const BATCH = { maxItems: 256, maxAgeMs: 0, maxQueued: 50_000, concurrency: 1, isOfItem: isRefusedValue };
/** Writes for which no client waits are batched for 10 ms. A crash in between has the same effect as a crash 10 ms earlier. */
const BATCHED = { ...BATCH, maxAgeMs: 10 };
const MAX_JOURNAL = 100_000;
/**
 * How long no call begins after a possible crash of PostgreSQL. By then every process has noticed it and has rewritten its running calls (it
 * confirms once a second). Earlier, a repeat of a call that the crash lost would look like a new call.
 */
const SETTLE_AFTER_CRASH_MS = 2_500;
/** How long a result stays in memory while PostgreSQL is unavailable. The client already has it. */
const RESULT_PATIENCE_MS = 600_000;

/** Writes since PostgreSQL last confirmed that all earlier ones are on disk. */
interface Unconfirmed {
  intents: CallIntent[];
  upstreams: [string, string][];
  results: CallResult[];
  deferred: DeferredRow[];
  undelivered: string[];
}
const noWrites = (): Unconfirmed => ({ intents: [], upstreams: [], results: [], deferred: [], undelivered: [] });

interface BeginRequest {
  call: CallIntent;
  isNew: boolean;
}

/** The call ledger in PostgreSQL. */
export class SqlCallLedger implements CallLedger {
  readonly #pool: pg.Pool;
  readonly #intents: MicroBatcher<BeginRequest, BeginAnswer>;
  readonly #results: MicroBatcher<CallResult, void>;
  readonly #deferred: DeferredCalls;
  readonly #upstreams: MicroBatcher<[string, string], void>;
  /** Calls whose upstream id waits to be written, and that have not ended. */
  readonly #unended = new Set<string>();
  readonly #undelivered: MicroBatcher<string, void>;
  #unconfirmed = noWrites();
  #mayHaveCrashed = false;
  /** The last `confirm`. Never rejects. */
  #confirming: Promise<void> = Promise.resolve();
  /** No new call begins before this monotonic time, milliseconds. */
  #acceptsAt = 0;

  /** `onLost`: called when outcomes for which no client waits could not be written for ten minutes and are lost. */
  constructor(
    pool: pg.Pool,
    readonly onLost: (error: unknown) => void,
  ) {
    this.#pool = pool;
    this.#intents = new MicroBatcher({ ...BATCH, flush: (calls) => this.#writeIntents(calls) });
    this.#results = new MicroBatcher({ ...BATCHED, flush: (results) => this.#writeResults(results) });
    this.#deferred = new DeferredCalls((rows) => this.#writeDeferred(rows), onLost);
    this.#upstreams = new MicroBatcher({ ...BATCHED, flush: (ids) => this.#writeUpstreams(ids) });
    this.#undelivered = new MicroBatcher({ ...BATCH, flush: (taskIds) => this.#writeUndelivered(taskIds) });
    pool.on('error', () => this.#suspectCrash());
  }

  begin(call: CallIntent, isNew: boolean): Promise<BeginAnswer> {
    return this.#intents.add({ call, isNew });
  }

  defer(call: CallIntent): DeferredCall | null {
    return this.#deferred.begin(call);
  }

  async upstream(taskId: string, upstreamTaskId: string): Promise<void> {
    this.#unended.add(taskId);
    return this.#upstreams.add([taskId, upstreamTaskId]);
  }

  async result(result: CallResult, soon: boolean): Promise<void> {
    this.#unended.delete(result.taskId);
    return this.#results.add(result, soon);
  }

  markUndelivered(taskId: string): Promise<void> {
    return this.#undelivered.add(taskId);
  }

  async clearUndelivered(taskId: string): Promise<void> {
    // Marks that are being written come first.
    await this.#undelivered.drain();
    this.#unconfirmed.undelivered = this.#unconfirmed.undelivered.filter((marked) => marked !== taskId);
    await this.#query('call_resumed', CLEAR_UNDELIVERED, [taskId]);
  }

  async find(taskId: string): Promise<CallRecord | null> {
    const rows = await this.#query<CallRow>('call_find', FIND, [withoutNul(taskId)]);
    return rows[0] === undefined ? null : toRecord(rows[0]);
  }

  async journal(sid: string, limit = MAX_JOURNAL): Promise<CallRecord[]> {
    return (await this.#query<CallRow>('call_journal', JOURNAL, [sid, limit])).map(toRecord);
  }

  async copy(calls: CallRecord[], sid: string): Promise<void> {
    await this.#query('call_copy', COPY, [sid, calls.map(() => newTaskId()), calls.map(({ taskId }) => taskId)]);
  }

  async takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean> {
    const { rowCount } = await retryDatabase(() =>
      this.#pool.query({ name: 'call_take_over', text: TAKE_OVER, values: [taskId, fromReplicaId, toReplicaId] }),
    );
    return rowCount === 1;
  }

  async drain(): Promise<void> {
    await Promise.all([this.#intents, this.#results, this.#deferred, this.#upstreams, this.#undelivered].map((queue) => queue.drain()));
  }

  /**
   * Runs `commit`, which waits for the disk: everything that was written before is safe afterwards. If PostgreSQL may have crashed since the
   * last commit, first repeats the writes since then. One at a time, so that a commit does not overtake writes that an earlier one repeats.
   */
  confirm(commit: () => Promise<void>): Promise<void> {
    const confirmed = this.#confirming.then(() => this.#confirmNext(commit));
    this.#confirming = confirmed.catch(() => {});
    return confirmed;
  }

  async #confirmNext(commit: () => Promise<void>): Promise<void> {
    const before = this.#unconfirmed;
    this.#unconfirmed = noWrites();
    try {
      if (this.#mayHaveCrashed) {
        this.#mayHaveCrashed = false;
        await this.#rewrite(before);
      }
      await commit();
    } catch (error) {
      this.#mayHaveCrashed = true;
      const { intents, upstreams, results, deferred, undelivered } = this.#unconfirmed;
      this.#unconfirmed = {
        intents: [...before.intents, ...intents],
        upstreams: [...before.upstreams, ...upstreams],
        results: [...before.results, ...results],
        deferred: [...before.deferred, ...deferred],
        undelivered: [...before.undelivered, ...undelivered],
      };
      throw error;
    }
  }

  #suspectCrash(): void {
    this.#mayHaveCrashed = true;
    this.#acceptsAt = performance.now() + SETTLE_AFTER_CRASH_MS;
  }

  async #rewrite({ intents, upstreams, results, deferred, undelivered }: Unconfirmed): Promise<void> {
    if (intents.length > 0) await this.#query('call_rewrite', REWRITE, intentColumns(intents));
    if (upstreams.length > 0) await this.#query('call_upstream', UPSTREAM, upstreamColumns(upstreams));
    if (results.length > 0) await this.#query('call_result', RESULT, resultColumns(results));
    if (deferred.length > 0) await this.#query('call_deferred', DEFERRED, deferredColumns(latestPerCall(deferred)));
    if (undelivered.length > 0) await this.#query('call_broken_again', MARK_UNDELIVERED_AGAIN, [undelivered.toSorted()]);
  }

  async #writeIntents(requests: BeginRequest[]): Promise<BeginAnswer[]> {
    const rows = await this.#decide(requests);
    const verdicts = new Map(rows.map((row) => [row.task_id, row]));
    return requests.map(({ call }) => {
      const verdict = verdicts.get(call.taskId);
      if (verdict !== undefined) return toAnswer(verdict);
      this.#unconfirmed.intents.push(call);
      return { verdict: 'started' };
    });
  }

  /** If the answer of a statement was lost, the statement may have run. Then its decision counts. */
  async #decide(requests: BeginRequest[]): Promise<Verdict[]> {
    let attempts = 0;
    return retryDatabase(async () => {
      attempts += 1;
      try {
        await this.#waitAfterCrash();
        // Marks that are being written decide whether an equal call is a repeat.
        await this.#undelivered.drain();
        const calls = requests.map(({ call }) => call);
        const joined =
          attempts === 1 ? [] : await this.#queryVerdicts('call_joined', JOINED, [calls.map((c) => c.taskId), calls.map((c) => c.sid)]);
        const done = new Set(joined.map((row) => row.task_id));
        const open = requests.filter(({ call }) => !done.has(call.taskId));
        const columns = [
          ...intentColumns(open.map(({ call }) => call)),
          open.map(({ isNew }) => isNew),
          open.map(({ call }) => call.hasClientKey === true),
        ];
        return [...joined, ...(await this.#queryVerdicts('call_intent', INTENT, columns))];
      } catch (error) {
        if (isDatabaseUnavailable(error)) this.#suspectCrash();
        throw error;
      }
    });
  }

  async #queryVerdicts(name: string, text: string, values: unknown[]): Promise<Verdict[]> {
    return (await this.#pool.query<Verdict>({ name, text, values })).rows;
  }

  async #waitAfterCrash(): Promise<void> {
    for (let left = this.#acceptsAt - performance.now(); left > 0; left = this.#acceptsAt - performance.now()) {
      await new Promise((resolve) => setTimeout(resolve, left));
    }
  }

  async #writeResults(results: CallResult[]): Promise<void[]> {
    const inOrder = results.toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1));
    await this.#query('call_result', RESULT, resultColumns(inOrder), RESULT_PATIENCE_MS);
    this.#unconfirmed.results.push(...results);
    return results.map(() => undefined);
  }

  async #writeDeferred(rows: DeferredRow[]): Promise<void> {
    await this.#query('call_deferred', DEFERRED, deferredColumns(rows), RESULT_PATIENCE_MS);
    this.#unconfirmed.deferred.push(...rows);
  }

  async #writeUpstreams(upstreams: [string, string][]): Promise<void[]> {
    // The upstream id of a call that has ended is no longer needed: clients get the result.
    const ids = upstreams.filter(([taskId]) => this.#unended.delete(taskId));
    if (ids.length > 0) {
      await this.#query('call_upstream', UPSTREAM, upstreamColumns(ids));
      this.#unconfirmed.upstreams.push(...ids);
    }
    return upstreams.map(() => undefined);
  }

  async #writeUndelivered(taskIds: string[]): Promise<void[]> {
    // Sorted, like results, so that two statements do not deadlock and lose a mark.
    await this.#query('call_broken', MARK_UNDELIVERED, [taskIds.toSorted()]);
    this.#unconfirmed.undelivered.push(...taskIds);
    return taskIds.map(() => undefined);
  }

  #query<R extends object>(name: string, sql: string, values: unknown[], patienceMs?: number): Promise<R[]> {
    return retryDatabase(async () => {
      try {
        return (await this.#pool.query<R & pg.QueryResultRow>({ name, text: sql, values })).rows;
      } catch (error) {
        if (isDatabaseUnavailable(error)) this.#suspectCrash();
        throw error;
      }
    }, patienceMs);
  }
}
