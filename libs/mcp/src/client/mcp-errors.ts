import { SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { errorCatalogue, PalestraError } from '@palestra/protocol';
import { ToolFailedError } from '@palestra/session';

/** Our own, for a request whose answer broke off: no server sends it. */
export const RESPONSE_INTERRUPTED = -32_990;

/** HTTP status of a refused request; null for anything else. */
export const statusOf = (error: unknown): number | null =>
  error instanceof StreamableHTTPError || error instanceof SseError ? (error.code ?? null) : null;

/** The SDK puts its own words before those of the server. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^(MCP error -?\d+: )+/, '') : String(error);

/** Why no session could be opened; nothing has run. */
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

/** What a call of a tool (or another request of an open session) failed with, when it was no result. */
export function requestError(error: unknown): Error {
  if (error instanceof PalestraError) return error;
  const status = statusOf(error);
  // 404 is the protocol's way to say that the session is no more.
  if (status !== null && status !== 404) {
    return new PalestraError('backend_invalid', { detail: `The MCP server refused the request: ${reasonOf(error)}.`, cause: error });
  }
  if (!(error instanceof McpError)) return lost(`A request failed: ${reasonOf(error)}.`, error);
  if (error.code === RESPONSE_INTERRUPTED) return lost(messageOf(error), error);
  // A service like this one on the other side: its infrastructure failures are ours, too.
  const code = (error.data as { code?: unknown } | undefined)?.code;
  if (typeof code === 'string' && code in errorCatalogue) {
    const detail = messageOf(error);
    return /^session_|^call_timeout$/.test(code) ? lost(detail, error) : new PalestraError('backend_invalid', { detail, cause: error });
  }
  return new ToolFailedError(messageOf(error), { cause: error });
}

export const lost = (why: string, cause?: unknown): PalestraError =>
  new PalestraError('session_lost', { detail: `Session lost: its MCP server is gone. ${why}`.trim(), cause });

/** The server answered, and something else than it should have. */
const isAnswer = (error: unknown): boolean =>
  error instanceof McpError
    ? error.code !== Number(ErrorCode.ConnectionClosed)
    : ['SyntaxError', 'ZodError'].includes((error as Error).name);

const codeOf = (error: unknown): string | null => {
  const code = (error as { cause?: { code?: unknown }; code?: unknown } | null)?.cause?.code ?? (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : null;
};

/**
 * In our words and the protocol's: the body of an answer that is none of MCP is not for whoever registered the URL, nor is the address behind it.
 * The SDK's own messages, and those of `JSON.parse`, quote both.
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
