import { SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { errorCatalogue, PalestraError } from '@palestra/protocol';
import { ToolFailedError } from '@palestra/session';

/** Our own, for a request whose answer broke off: no server sends it. */
export const BROKEN_OFF = -32_990;

/** HTTP status of a refused request; null for anything else. */
export const statusOf = (error: unknown): number | null =>
  error instanceof StreamableHTTPError || error instanceof SseError ? (error.code ?? null) : null;

/** The SDK puts its own words before those of the server. */
export const wordsOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^(MCP error -?\d+: )+/, '') : String(error);

/** Why no session could be opened; nothing has run. */
export function openingError(error: unknown, hint: string): PalestraError {
  if (error instanceof PalestraError) return error;
  const status = statusOf(error);
  const detail = `The MCP server could not be opened: ${causesOf(error)}${hint}`;
  if (status === 429) return new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 1, cause: error });
  if (status === 503) return new PalestraError('backend_unreachable', { detail, retryAfterSeconds: 1, cause: error });
  if (status !== null || (error instanceof McpError && error.code !== Number(ErrorCode.ConnectionClosed))) {
    return new PalestraError('backend_invalid', { detail, cause: error });
  }
  return new PalestraError('backend_unreachable', { detail, cause: error });
}

/** What a call of a tool (or another request of an open session) failed with, when it was no result. */
export function requestError(error: unknown): Error {
  if (error instanceof PalestraError) return error;
  const status = statusOf(error);
  // 404 is the protocol's way to say that the session is no more.
  if (status !== null && status !== 404) {
    return new PalestraError('backend_invalid', { detail: `The MCP server refused the request: ${wordsOf(error)}`, cause: error });
  }
  if (!(error instanceof McpError) || error.code === BROKEN_OFF) return lost(causesOf(error), error);
  // A service like this one on the other side: its infrastructure failures are ours, too.
  const code = (error.data as { code?: unknown } | undefined)?.code;
  if (typeof code === 'string' && code in errorCatalogue) {
    const detail = wordsOf(error);
    return /^session_|^call_timeout$/.test(code) ? lost(detail, error) : new PalestraError('backend_invalid', { detail, cause: error });
  }
  return new ToolFailedError(wordsOf(error), { cause: error });
}

export const lost = (why: string, cause?: unknown): PalestraError =>
  new PalestraError('session_lost', { detail: `Session lost: its MCP server is gone. ${why}`.trim(), cause });

/** `fetch failed` says nothing without its cause. */
function causesOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as { message?: string; code?: string } | undefined) : undefined;
  const deeper = cause?.message || cause?.code;
  return deeper ? `${wordsOf(error)} (${deeper})` : wordsOf(error);
}
