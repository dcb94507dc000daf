import type { ErrorCode } from './error-catalogue.ts';
import type { FailureClass } from './vocabularies.ts';

const OF_ENVIRONMENT: ReadonlySet<string> = new Set<ErrorCode>([
  'setup_failed',
  'environment_failed',
  'session_diverged',
  'answer_too_large',
]);
/** The request was wrong. */
const OF_POLICY: ReadonlySet<string> = new Set<ErrorCode>([
  'invalid_body',
  'invalid_request',
  'invalid_json',
  'invalid_split',
  'invalid_index',
  'invalid_index_range',
  'unknown_toolset',
  'unknown_variant',
]);

/** Whose failure an error of the catalogue is. A code of a newer server counts as infrastructure. */
export function classifyCode(code: string): Exclude<FailureClass, 'ok'> {
  if (OF_ENVIRONMENT.has(code)) return 'environment';
  return OF_POLICY.has(code) ? 'policy' : 'infrastructure';
}
