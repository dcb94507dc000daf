/** Why a build or an instance failed, for the author of the environment. */
export type HostingErrorCode =
  /** The engine does not answer: nothing is known, nothing was changed. */
  | 'engine_unavailable'
  /** The provider cannot enforce a setting. */
  | 'hosting_unsupported'
  /** The source cannot be used: too large, unsafe, or no environment in it. */
  | 'source_invalid'
  | 'build_failed'
  | 'build_timeout'
  | 'build_cancelled'
  /** The instance ended, or never listened. */
  | 'instance_failed'
  /** The sandbox has ended, or there is none. */
  | 'sandbox_lost';

/** `detail` says what to do. `line`: the 1-based line of the build log that failed; null where none did. */
export class HostingError extends Error {
  readonly code: HostingErrorCode;
  readonly line: number | null;

  constructor(code: HostingErrorCode, detail: string, options: { cause?: unknown; line?: number } = {}) {
    super(detail, { cause: options.cause });
    this.name = 'HostingError';
    this.code = code;
    this.line = options.line ?? null;
  }
}
