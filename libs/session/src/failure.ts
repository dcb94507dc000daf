import { PalestraError } from '@palestra/protocol';
import { ToolFailedError } from './backend.port.ts';
import type { CallOutcome, FailureClass } from './call-ledger.port.ts';

export function classifyOutcome(outcome: CallOutcome): FailureClass {
  if (outcome.type === 'result') return outcome.ok ? 'ok' : 'policy';
  if (outcome.type === 'tool_failed') return 'environment';
  return classifyCode(outcome.code);
}

export function classifyCode(code: string): FailureClass {
  return code === 'setup_failed' || code === 'environment_failed' ? 'environment' : 'infrastructure';
}

/** The outcome of a call whose backend rejected. */
export function outcomeOfError(error: unknown): CallOutcome {
  if (error instanceof ToolFailedError) return { type: 'tool_failed', message: error.message };
  if (error instanceof PalestraError) return { type: 'refused', code: error.code, status: error.status, detail: error.message };
  return { type: 'refused', code: 'internal_error', status: 500, detail: 'Internal Server Error' };
}

export function errorOfOutcome(outcome: CallOutcome & { type: 'refused' }): PalestraError {
  return new PalestraError(outcome.code, { status: outcome.status, detail: outcome.detail });
}
