import type { ErrorCode, FailureClass } from '@palestra/protocol';
import type { ToolCallResult } from './backend-call.ts';

/** Written, and safe against a crash of the API, before the tool runs; unless nobody can come back for the call (`note`). */
export interface CallIntent {
  /** 32 hex characters; what a client resumes by. */
  taskId: string;
  sid: string;
  kind: 'call' | 'score_group';
  tool: string;
  /** JSON text as the client sent it, secrets hidden. */
  input: string;
  /** The API process that runs it. */
  replicaId: string;
  startedAt: number;
  /** Its client made up the id: it is a call of its own, whatever equals it. */
  named?: boolean;
}

/**
 * What became of an intent. `begun`: it is stored, run it. `join`: an equal call of this session broke before its end was delivered, and
 * this is its client again: that call's outcome is wanted. `doubt`: an equal call began on another process a moment ago; whether
 * its stream broke depends on whether that process lives. `known`: this named call began before. `moved`: the session has ended or belongs to another process.
 */
export type IntentAnswer =
  | { verdict: 'begun' }
  | { verdict: 'join'; taskId: string }
  | { verdict: 'doubt'; taskId: string; replicaId: string }
  | { verdict: 'known' }
  | { verdict: 'moved' };

/** How a call ended, as every reader of its stream gets it. */
export type CallOutcome =
  | ({ type: 'result' } & ToolCallResult)
  /** The tool (or the judge) raised. */
  | { type: 'tool_failed'; message: string }
  /** The tool did not run, or nobody can know whether it did (`session_lost`). */
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
  /** Order of the calls of a session. */
  seq: number;
  /** Id under which the environment's server runs it; null when it gave none. */
  upstreamTaskId: string | null;
  /** null while it runs. */
  outcome: CallOutcome | null;
  failureClass: FailureClass | null;
  endedAt: number | null;
}

export interface CallLedger {
  /** Resolves when the intent would survive a crash of this process. `sure`: a doubt has been cleared. */
  intent(call: CallIntent, sure: boolean): Promise<IntentAnswer>;
  /**
   * Begins a call that no client can resume, in a session that this process owns. Its row is written with its outcome, or as running when it
   * takes long. A crash of this process can lose the row. null: too many rows wait; use `intent`.
   */
  defer(call: CallIntent): DeferredCall | null;
  upstream(taskId: string, upstreamTaskId: string): Promise<void>;
  /** The first outcome of a call stays. `soon`: at once; what nobody waits for may be collected for a few milliseconds. */
  result(result: CallResult, soon: boolean): Promise<void>;
  /** The stream of a call broke before its end was delivered: the next equal call of its session is its client again. */
  broken(taskId: string): Promise<void>;
  /** The client of a call whose stream broke came back by its id: the next equal call of its session is another one. */
  resumed(taskId: string): Promise<void>;
  find(taskId: string): Promise<CallRecord | null>;
  /** The calls of a session whose tool ran to an end, in order, at most the first `limit`. */
  journal(sid: string, limit?: number): Promise<CallRecord[]>;
  /** Stores copies of ended calls for another session, under new ids and in the given order. */
  copy(calls: CallRecord[], sid: string): Promise<void>;
  /** Makes a dead replica's call ours; false when another one was faster. */
  takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean>;
  /** Resolves when all that was asked for before is stored. */
  drain(): Promise<void>;
}

/** Which API processes are alive, and where: each renews its lease while it runs. */
export interface ReplicaLeases {
  isAlive(replicaId: string): Promise<boolean>;
  /** No other process is known: what is in memory here cannot have been changed elsewhere. */
  alone(): boolean;
  /** Address of a living process; null when it is dead. */
  locate(replicaId: string): Promise<string | null>;
  /** Asks the process itself: all that it noticed before this question is in the store by the answer. Waits for the lease of a silent one. */
  confirm(replicaId: string): Promise<{ alive: true } | { alive: false; lastSeenAt: number | null }>;
}
