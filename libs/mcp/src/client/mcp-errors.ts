import { SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { errorCatalogue, PalestraError } from '@palestra/protocol';
import { ToolFailedError } from '@palestra/session';

/** Our code for a request whose response was interrupted; no server sends it. */
export const RESPONSE_INTERRUPTED = -32_990;

/** HTTP status of a refused request; null for anything else. */
export const statusOf = (error: unknown): number | null =>
  error instanceof StreamableHTTPError || error instanceof SseError ? (error.code ?? null) : null;

/** Removes the SDK's prefix from the server's message. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^(MCP error -?\d+: )+/, '') : String(error);

/** The error of a session that could not be opened; nothing ran. */
export function openingError(error: unknown, hint: string): PalestraError {
  if (error instanceof PalestraError) return error;
  const status = statusOf(error);
  const detail = `The MCP server could not be opened: ${reasonOf(error)}${hint}`;
  if (status === 429) return new PalestraError('capacity_exhausted', { detail, retryAfterSeconds: 1, cause: error });
  if (status === 503) return new PalestraError('backend_unreachable', { detail, retryAfterSeconds: 1, cause: error });
  if (status !== null || isAnswer(error)) {
    return new PalestraError('backend_invalid', { detail, cause: error, relayed: error instanceof McpError });
  }
  return new PalestraError('backend_unreachable', { detail, cause: error });
}

/** The error of a request in an open session. */
export function requestError(error: unknown): Error {
  if (error instanceof PalestraError) return error;
  const status = statusOf(error);
  // A proxy without a server.
  if (status === 503) {
    const detail = 'A proxy in front of the MCP server answered HTTP 503; nothing was run.';
    return new PalestraError('backend_unreachable', { detail, retryAfterSeconds: 1, cause: error });
  }
  // MCP uses 404 for a session that does not exist any more.
  if (status !== null && status !== 404) {
    return new PalestraError('backend_invalid', { detail: `The MCP server refused the request: ${reasonOf(error)}.`, cause: error });
  }
  if (!(error instanceof McpError)) return lost(`A request failed: ${reasonOf(error)}.`, error);
  if (error.code === RESPONSE_INTERRUPTED) return lost(messageOf(error), error);
  // The server is another Palestra: keep its infrastructure failures.
  const code = (error.data as { code?: unknown } | undefined)?.code;
  if (typeof code === 'string' && code in errorCatalogue) {
    const detail = messageOf(error);
    return /^session_|^call_timeout$/.test(code) ? lost(detail, error) : new PalestraError('backend_invalid', { detail, cause: error });
  }
  return new ToolFailedError(messageOf(error), { cause: error });
}

/** The error of a call. A proxy answers 502 or 504 for a server that may have run it. */
export function callError(error: unknown): unknown {
  const status = error instanceof PalestraError ? statusOf(error.cause) : null;
  if (status !== 502 && status !== 504) return error;
  return lost(`A proxy answered its call with HTTP ${status}; whether the tool ran is unknown.`, error);
}

export const lost = (reason: string, cause?: unknown): PalestraError =>
  new PalestraError('session_lost', { detail: `Session lost: its MCP server is gone. ${reason}`.trim(), cause });

/** The server sent an invalid answer. */
const isAnswer = (error: unknown): boolean =>
  error instanceof McpError
    ? error.code !== Number(ErrorCode.ConnectionClosed)
    : ['SyntaxError', 'ZodError'].includes((error as Error).name);

const codeOf = (error: unknown): string | null => {
  const code = (error as { cause?: { code?: unknown }; code?: unknown } | null)?.cause?.code ?? (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
};

/**
 * The reason without the text of the server. Its body and its address are not for the user who registered the URL; messages of the SDK and
 * of `JSON.parse` quote both.
 */
function reasonOf(error: unknown): string {
  const status = statusOf(error);
  if (status !== null && status >= 300 && status < 400) {
    return `it redirects (HTTP ${status}), which is followed within its own origin only; register the address that it redirects to`;
  }
  if (status !== null && status > 0) return `it answered HTTP ${status}`;
  if (error instanceof McpError) return messageOf(error);
  const code = codeOf(error);
  if (code !== null) return `the connection failed (${code})`;
  return isAnswer(error) || status !== null ? 'its answer does not follow the protocol' : 'the connection failed';
}
