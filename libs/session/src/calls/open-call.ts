import type { CallOutcome } from '../ports/call-ledger.port.ts';

/** A call that is stored, so that the client may learn its task id. */
export interface OpenCall {
  /** null when the client resumes an unknown call. */
  taskId: string | null;
  /** Runs the tool, or joins the call that runs, or reads its outcome. Never rejects. Always returns the same promise. */
  outcome(): Promise<CallOutcome>;
  /**
   * The client disconnected before it could learn the task id. A call that has not begun does not run, unless its idempotency key lets the
   * client ask for it again.
   */
  abandon(): void;
  /** Opens a stream of this call to a client. Call one of its methods when the stream ends. */
  stream(): CallStream;
}

/** One client's stream of a call. Call exactly one of its methods, once. */
export interface CallStream {
  /** As far as we know, the client has read the end. */
  delivered(): void;
  /** The stream ended before that. The client will return, perhaps without the task id. */
  undelivered(): void;
}

/** The official client and its sandbox client compare this message. */
export const unknownOutcome: CallOutcome = { type: 'tool_failed', message: 'unknown task_id' };
export const unknownCall = (): OpenCall => settledCall(null, unknownOutcome);

/** A call that has ended. `taskId` is null for an unknown call. */
export function settledCall(taskId: string | null, outcome: CallOutcome): OpenCall {
  const settled = Promise.resolve(outcome);
  return { taskId, outcome: () => settled, abandon: () => {}, stream: () => ({ delivered: () => {}, undelivered: () => {} }) };
}
