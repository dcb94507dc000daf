import { classifyCode, type FailureClass, INFRASTRUCTURE_FAILURE } from '@palestra/protocol';

/** Whose failure an error is. Only a failure of the policy may count against the policy. */
export type ErrorClass = Exclude<FailureClass, 'ok'>;

export interface Failure {
  failureClass: ErrorClass;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  /** What the user can do. */
  advice: string;
}

const RETRYABLE_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** They have one of these statuses, but the same request fails again. */
const FINAL_CODES: ReadonlySet<string> = new Set(['call_timeout', 'setup_timeout']);
const UNKNOWN_ENVIRONMENT: ReadonlySet<string> = new Set(['deployment_not_found', 'environment_not_found', 'unknown_variant']);

const ADVICE = {
  unavailable: 'Check that the service runs and that its address is right. Requests that the client can repeat were repeated.',
  limit: 'Close sessions that are no longer needed or ask the operator for a higher limit, then send the request again.',
  key: 'Create another API key under /keys of the service and pass it to the client.',
  permission: 'Use an API key with the scope and the role that this request needs.',
  storage: 'Delete stored files, or ask the operator for a higher quota.',
  environment_name: 'The environment was renamed, deleted or made private, or never existed. Choose one that the service lists.',
  session: 'Open another session for the task, and leave this episode out of the figures.',
  environment: 'The environment failed, not the policy. Leave this episode out of the figures and tell the owner of the environment.',
  request: 'Correct the request: the same request fails again.',
  service: 'The service failed. Tell its operator, with the id of the error if it has one.',
  other: 'Look for the code in docs/errors.md.',
} as const;

/** The failure of a request without a complete response. */
export const networkFailure: Failure = { failureClass: 'infrastructure', retryable: true, advice: ADVICE.unavailable };
/** The failure of a tool that raised an error. Its text says if the infrastructure failed, such as a model that judges (ADR 35). */
export const toolFailure = (text: string): Failure =>
  text.startsWith(INFRASTRUCTURE_FAILURE)
    ? { failureClass: 'infrastructure', retryable: false, advice: ADVICE.session }
    : { failureClass: 'environment', retryable: false, advice: ADVICE.environment };
/** The failure of a call that the environment refused. The session continues. */
export const refusedCall: Failure = {
  failureClass: 'policy',
  retryable: false,
  advice: 'Give the message to the policy, which may try again.',
};

/**
 * The failure that a response reports. `code`: of the error catalogue; null from another ORS server or a proxy.
 * tests/fixtures/client-failures.json has examples, which the Python package `palestra` classifies alike.
 */
export function classifyResponse(status: number, code: string | null): Failure {
  const failureClass = code === null ? classOfStatus(status) : classifyCode(code);
  const retryable = RETRYABLE_STATUS.has(status) && !(code !== null && FINAL_CODES.has(code));
  return { failureClass, retryable, advice: ADVICE[adviceFor(status, code, failureClass)] };
}

function classOfStatus(status: number): ErrorClass {
  if (status === 400 || status === 422) return 'policy';
  return status === 500 ? 'environment' : 'infrastructure';
}

function adviceFor(status: number, code: string | null, failureClass: ErrorClass): keyof typeof ADVICE {
  if (code !== null && UNKNOWN_ENVIRONMENT.has(code)) return 'environment_name';
  if (code === 'storage_quota_exceeded') return 'storage';
  if (code === 'session_not_found' || status === 410 || (code !== null && FINAL_CODES.has(code))) return 'session';
  if (failureClass === 'environment') return 'environment';
  if (status === 401) return 'key';
  if (status === 403) return 'permission';
  if (status === 429) return 'limit';
  if (status === 500) return 'service';
  if (status >= 502) return 'unavailable';
  return failureClass === 'policy' || status === 413 ? 'request' : 'other';
}
