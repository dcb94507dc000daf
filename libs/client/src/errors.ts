/** What can go wrong, as classes: `instanceof` tells a model's mistake from a broken tool, a dead session, a dead network. */

/** The server answered with an error status. */
export class PalestraApiError extends Error {
  constructor(
    /** Code of the error catalogue; null when the answer came from something else (another ORS server, a proxy). */
    readonly code: string | null,
    readonly status: number,
    readonly detail: string,
    /** Wait that the server asked for, in milliseconds. */
    readonly retryAfterMs: number | null = null,
    /** `X-Backend-State: starting`: nothing ran, the environment is on its way up. */
    readonly backendStarting = false,
  ) {
    super(`${status}: ${detail}`);
    this.name = 'PalestraApiError';
  }
}

/** No whole answer: refused, reset, cut, stalled, or past the deadline. */
export class ConnectionError extends Error {
  constructor(
    message: string,
    /** The server had begun to answer, and the stream had lived past a heartbeat. */
    readonly madeProgress = false,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'ConnectionError';
  }
}

/** The environment refused the call (`ok:false`): a mistake of the model. The session goes on. */
export class ToolCallError extends Error {
  constructor(
    /** `not_found`, `name_collision`, `input_validation`, `episode_finished`, or what a newer server says. */
    readonly reason: string,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`);
    this.name = 'ToolCallError';
  }
}

/** The tool itself crashed. The session is closed: its state cannot be trusted any more. */
export class ToolFailedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ToolFailedError';
  }
}

/** The session is over on the server, or was closed here. */
export class SessionTerminatedError extends Error {
  constructor(
    readonly sid: string,
    detail: string,
  ) {
    super(`session ${sid} terminated: ${detail}`);
    this.name = 'SessionTerminatedError';
  }
}
