import { HostingError } from '@palestra/hosting';
import { type ErrorCode, PalestraError } from '@palestra/protocol';

/** `not_found` of an image is the client's mistake: repeating the request does not help. */
const CODES: Partial<Record<HostingError['code'], ErrorCode>> = {
  engine_unavailable: 'backend_unreachable',
  hosting_unsupported: 'hosting_unsupported',
  build_failed: 'invalid_request',
  sandbox_lost: 'session_lost',
};

/** The error of an engine as clients get it. Others are returned as they are. */
export function sandboxError(error: unknown): unknown {
  if (!(error instanceof HostingError)) return error;
  const code = CODES[error.code];
  const detail = error.code === 'sandbox_lost' ? `Session lost: ${error.message}` : error.message;
  // Not a status that clients repeat: the same image fails again.
  if (code === undefined) return new PalestraError('invalid_request', { detail, cause: error });
  return new PalestraError(code, { detail, cause: error });
}

export async function withSandboxErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw sandboxError(error);
  }
}
