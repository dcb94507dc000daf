import { classifyCode, type FailureClass, INFRASTRUCTURE_FAILURE, PalestraError, type SessionState } from '@palestra/protocol';
import { ToolFailedError } from '../ports/backend-call.ts';
import type { CallOutcome } from '../ports/call-ledger.port.ts';

export function classifyOutcome(outcome: CallOutcome): FailureClass {
  if (outcome.type === 'result') return outcome.ok ? 'ok' : 'policy';
  if (outcome.type === 'tool_failed') return outcome.message.startsWith(INFRASTRUCTURE_FAILURE) ? 'infrastructure' : 'environment';
  return classifyCode(outcome.code);
}

/** The failure class of an ended session. An end that the client requested is `ok`, unless the session had failed before. */
export function classifyEnd(to: SessionState, before: FailureClass | null): FailureClass {
  if (before !== null) return before;
  if (to === 'closed') return 'ok';
  return to === 'diverged' ? 'environment' : 'infrastructure';
}

/** The outcome of a call that the backend rejected with `error`. */
export function outcomeOfError(error: unknown): Exclude<CallOutcome, { type: 'result' }> {
  // Python's bare `assert` has no message, and clients take an empty error for a connection error.
  if (error instanceof ToolFailedError) return { type: 'tool_failed', message: error.message || 'The tool failed and gave no reason.' };
  if (error instanceof PalestraError) return { type: 'refused', code: error.code, status: error.status, detail: error.message };
  return { type: 'refused', code: 'internal_error', status: 500, detail: 'Internal Server Error' };
}

export function errorOfOutcome(outcome: CallOutcome & { type: 'refused' }): PalestraError {
  return new PalestraError(outcome.code, { status: outcome.status, detail: outcome.detail });
}
