import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { PalestraError } from '@palestra/protocol';

/** What the SDK's own servers say of a session that they do not have. */
const SESSION_NOT_FOUND = -32_001;

/** An error of a request as JSON-RPC tells it. The SDK reads `code`, `message` and `data` of whatever a handler throws. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: Record<string, unknown>,
  ) {
    super(message);
    this.name = 'RpcError';
  }
}

/** `data.code` is the catalogue's: it tells an infrastructure failure from a bad request, and whether to come again. */
export function rpcErrorOf(error: PalestraError): RpcError {
  const { code, status, retryable, retryAfterSeconds, message } = error;
  const data = { code, status, retryable, ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }) };
  return new RpcError(rpcCodeOf(error), message, data);
}

function rpcCodeOf({ code, status }: PalestraError): number {
  if (code === 'route_not_found') return ErrorCode.MethodNotFound;
  if (status === 404 || status === 410) return SESSION_NOT_FOUND;
  return status < 500 && status !== 429 ? ErrorCode.InvalidParams : ErrorCode.InternalError;
}

/** The request's own error; anything else is for the log, and nobody else's business. */
export function asRpcError(error: unknown): unknown {
  return error instanceof PalestraError ? rpcErrorOf(error) : error;
}
