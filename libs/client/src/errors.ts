import { classifyResponse, type ErrorClass, type Failure, networkFailure, refusedCall, toolFailure } from './failures.ts';

/** Base of the errors of this client: whose failure it is, whether the same request may succeed later, and what the user can do. */
export class ClientError extends Error implements Failure {
  readonly failureClass: ErrorClass;
  readonly retryable: boolean;
  readonly advice: string;

  constructor(message: string, failure: Failure, options?: { cause?: unknown }) {
    super(message, options);
    this.failureClass = failure.failureClass;
    this.retryable = failure.retryable;
    this.advice = failure.advice;
  }
}

/** The server answered with an error. */
export class PalestraApiError extends ClientError {
  constructor(
    /** Code of the error catalogue; null if another ORS server or a proxy sent the response. */
    readonly code: string | null,
    readonly status: number,
    readonly detail: string,
    /** `Retry-After`, in milliseconds. */
    readonly retryAfterMs: number | null = null,
    /** `X-Backend-State: starting`: the environment is starting, and nothing ran. */
    readonly backendStarting = false,
    /** It is the recorded outcome of a call: a repeat gets the same. */
    isOutcome = false,
  ) {
    const failure = classifyResponse(status, code);
    super(`${status}: ${detail}`, isOutcome ? { ...failure, retryable: false } : failure);
    this.name = 'PalestraApiError';
  }
}

/** No complete response: the connection was refused or reset, the stream stalled, or the deadline passed. */
export class ConnectionError extends ClientError {
  constructor(
    message: string,
    /** Whether the stream lived long enough to receive a heartbeat. */
    readonly madeProgress = false,
    options?: { cause?: unknown },
  ) {
    super(message, networkFailure, options);
    this.name = 'ConnectionError';
  }
}

/** The environment refused the call (`ok: false`) because of a mistake of the policy. The session continues. */
export class ToolCallError extends ClientError {
  constructor(
    /** `not_found`, `name_collision`, `input_validation`, `episode_finished`, or a reason of a newer server. */
    readonly reason: string,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`, refusedCall);
    this.name = 'ToolCallError';
  }
}

/** The tool raised an error. The session is closed, because its state is unknown. */
export class ToolFailedError extends ClientError {
  constructor(message: string) {
    super(message, toolFailure(message));
    this.name = 'ToolFailedError';
  }
}

/** The session ended on the server, or this client closed it. */
export class SessionTerminatedError extends ClientError {
  constructor(
    readonly sid: string,
    detail: string,
    /** Code of the error catalogue; null if this client closed the session or another ORS server ended it. */
    readonly code: string | null = null,
  ) {
    super(`session ${sid} terminated: ${detail}`, classifyResponse(410, code));
    this.name = 'SessionTerminatedError';
  }
}
