import type { ErrorCode, FailureClass } from '@palestra/protocol';
import type { ToolCallResult } from './backend-call.ts';

/** A call before it runs. It is stored, and survives a crash of the API process, before the tool runs; see `defer` for the exception. */
export interface CallIntent {
  /** 32 hex characters. A client resumes the call by it. */
  taskId: string;
  sid: string;
  kind: 'call' | 'score_group';
  tool: string;
  /** JSON text as the client sent it, without secrets. */
  input: string;
  /** The API process that runs it. */
  replicaId: string;
  startedAt: number;
  /** The client gave the call an idempotency key: only a request with the same key repeats it, however equal others are. */
  hasClientKey?: boolean;
}

/**
 * The answer to `begin` (ADR 7). `started`: the intent is stored; run the tool. `join`: an equal call of this session ended or runs, and its
 * client did not receive the end: this is that client, and it gets that call's outcome. `uncertain`: an equal call began on another process
 * a moment ago; if that process is dead, its client did not receive the end. `repeated`: a call with this idempotency key began before.
 * `moved`: the session has ended or belongs to another process.
 */
export type BeginAnswer =
  | { verdict: 'started' }
  | { verdict: 'join'; taskId: string }
  | { verdict: 'uncertain'; taskId: string; replicaId: string }
  | { verdict: 'repeated' }
  | { verdict: 'moved' };

/** How a call ended, as every reader of its stream gets it. */
export type CallOutcome =
  | ({ type: 'result' } & ToolCallResult)
  /** The tool (or the judge) raised. */
  | { type: 'tool_failed'; message: string }
  /** The tool did not run, or its outcome is unknown (`session_lost`). */
  | { type: 'refused'; code: ErrorCode; status: number; detail: string };

export interface CallResult {
  taskId: string;
  outcome: CallOutcome;
  failureClass: FailureClass;
  endedAt: number;
}

/** A call whose row is written after it ended. */
export interface DeferredCall {
  /** Call once. The row is written soon; the ledger reports a failure itself. */
  end(end: Omit<CallResult, 'taskId'>): void;
}

export interface CallRecord extends CallIntent {
  /** Orders the calls of a session. */
  seq: number;
  /** The id under which the environment's server runs it; null when it gave none. */
  upstreamTaskId: string | null;
  /** null while it runs. */
  outcome: CallOutcome | null;
  failureClass: FailureClass | null;
  endedAt: number | null;
}

export interface CallLedger {
  /** Resolves when the intent would survive a crash of this process. `isNew`: it is known to repeat no call of another process. */
  begin(call: CallIntent, isNew: boolean): Promise<BeginAnswer>;
  /**
   * Begins a call that no client can resume, in a session that this process owns. Its row is written with its outcome, or as running when it
   * takes long. A crash of this process can lose the row. null: too many rows wait; use `intent`.
   */
  defer(call: CallIntent): DeferredCall | null;
  upstream(taskId: string, upstreamTaskId: string): Promise<void>;
  /** Stores the outcome. The first outcome of a call stays. `soon`: write at once; otherwise writes may be batched for a few milliseconds. */
  result(result: CallResult, soon: boolean): Promise<void>;
  /** The client of the call did not receive its end. The next equal call of the session is that client again. */
  markUndelivered(taskId: string): Promise<void>;
  /** The client has resumed the call by its task id. The next equal call of the session is a new call. */
  clearUndelivered(taskId: string): Promise<void>;
  find(taskId: string): Promise<CallRecord | null>;
  /** The calls of a session whose tool ran to its end, in order; at most the first `limit`. */
  journal(sid: string, limit?: number): Promise<CallRecord[]>;
  /** Stores copies of ended calls for another session, under new ids and in the given order. */
  copy(calls: CallRecord[], sid: string): Promise<void>;
  /** Assigns a dead replica's call to another replica. False when a third one was faster. */
  takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean>;
  /** Resolves when everything that was written before this call is stored. */
  drain(): Promise<void>;
}

/** Which API processes are alive, and at which addresses. Each process renews its lease while it runs. */
export interface ReplicaLeases {
  isAlive(replicaId: string): Promise<boolean>;
  /** True when no other process is known: no other process can have changed what this one holds in memory. */
  alone(): boolean;
  /** The address of a process; null when it is dead. */
  locate(replicaId: string): Promise<string | null>;
  /**
   * Asks the process itself. When it answers, everything that it had noticed before is in the store. Waits for the end of the lease of a
   * process that does not answer.
   */
  confirm(replicaId: string): Promise<{ alive: true } | { alive: false; lastSeenAt: number | null }>;
}
