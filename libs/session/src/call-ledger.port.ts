import type { ErrorCode, ToolErrorReason } from '@palestra/protocol';

/**
 * Whose failure it was: of the policy (bad tool, bad arguments), of the environment (tool or setup raised), or of the
 * infrastructure (timeout, lost backend, refused capacity). Infrastructure failures never count as reward 0.
 */
export type FailureClass = 'ok' | 'policy' | 'environment' | 'infrastructure';

/** Written, and safe against a crash of the API, before the tool runs. */
export interface CallIntent {
  /** 32 hex characters; what a client resumes by. */
  taskId: string;
  sid: string;
  kind: 'call' | 'score_group';
  tool: string;
  /** JSON text as the client sent it. */
  input: string;
  /** The API process that runs it. */
  replicaId: string;
  startedAt: number;
}

/** How a call ended, as every reader of its stream gets it. */
export type CallOutcome =
  | { type: 'result'; text: string; ok: boolean; reason: ToolErrorReason | null; reward: number | null; finished: boolean }
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
  /** Resolves when the intent would survive a crash of this process. */
  intent(call: CallIntent): Promise<void>;
  upstream(taskId: string, upstreamTaskId: string): Promise<void>;
  result(result: CallResult): Promise<void>;
  find(taskId: string): Promise<CallRecord | null>;
  /** Makes a dead replica's unfinished call ours; false when another one was faster or it has ended. */
  takeOver(taskId: string, fromReplicaId: string, toReplicaId: string): Promise<boolean>;
  drain(): Promise<void>;
}

/** Which API processes are alive: each renews its lease while it runs. */
export interface ReplicaLeases {
  isAlive(replicaId: string): Promise<boolean>;
}
