import type { CallOutcome } from '../ports/call-ledger.port.ts';

/** A call whose task id may be told to the client now. */
export interface OpenCall {
  /** null when the client resumes a call that nobody knows. */
  taskId: string | null;
  /** Runs the tool, or joins or replays the call that did; never rejects. The same promise however often it is asked. */
  outcome(): Promise<CallOutcome>;
  /**
   * The client vanished before it could learn the task id: a call of its own that has not begun does not run, unless the client has named it and
   * so can come back for it.
   */
  abandon(): void;
  /** A client's stream of this call opens; to be told how it ended. */
  stream(): CallStream;
}

/** One client's view of a call. Exactly one of its methods is to be called, once. */
export interface CallStream {
  /** As far as can be known, the client has read the end. */
  delivered(): void;
  /** The stream broke before that: the client will come back, perhaps without the task id. */
  broke(): void;
}

/** What the official client and its sandbox sibling match on. */
export const unknownOutcome: CallOutcome = { type: 'tool_failed', message: 'unknown task_id' };
export const unknownCall = (): OpenCall => settledCall(null, unknownOutcome);

/** A call that has ended; null: one that nobody knows. */
export function settledCall(taskId: string | null, outcome: CallOutcome): OpenCall {
  const settled = Promise.resolve(outcome);
  return { taskId, outcome: () => settled, abandon: () => {}, stream: () => ({ delivered: () => {}, broke: () => {} }) };
}
