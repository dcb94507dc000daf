/** Error classes: `instanceof` distinguishes a mistake of the policy, a failed tool, an ended session and a network failure. */

/** The server answered with an error status. */
export class PalestraApiError extends Error {
  constructor(
    /** Code of the error catalogue; null if another ORS server or a proxy sent the response. */
    readonly code: string | null,
    readonly status: number,
    readonly detail: string,
    /** `Retry-After`, in milliseconds. */
    readonly retryAfterMs: number | null = null,
    /** `X-Backend-State: starting`: the environment is starting, and nothing ran. */
    readonly backendStarting = false,
  ) {
    super(`${status}: ${detail}`);
    this.name = 'PalestraApiError';
  }
}

/** No complete response: the connection was refused or reset, the stream stalled, or the deadline passed. */
export class ConnectionError extends Error {
  constructor(
    message: string,
    /** Whether the stream lived long enough to receive a heartbeat. */
    readonly madeProgress = false,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'ConnectionError';
  }
}

/** The environment refused the call (`ok: false`) because of a mistake of the policy. The session continues. */
export class ToolCallError extends Error {
  constructor(
    /** `not_found`, `name_collision`, `input_validation`, `episode_finished`, or a reason of a newer server. */
    readonly reason: string,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`);
    this.name = 'ToolCallError';
  }
}

/** The tool raised an error. The session is closed, because its state is unknown. */
export class ToolFailedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ToolFailedError';
  }
}

/** The session ended on the server, or this client closed it. */
export class SessionTerminatedError extends Error {
  constructor(
    readonly sid: string,
    detail: string,
  ) {
    super(`session ${sid} terminated: ${detail}`);
    this.name = 'SessionTerminatedError';
  }
}
