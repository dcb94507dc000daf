import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { PalestraError } from '@palestra/protocol';

/** The code of the SDK's servers for an unknown session. */
const SESSION_NOT_FOUND = -32_001;

/** A JSON-RPC error. The SDK reads `code`, `message` and `data` of any thrown error. */
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

/** `data.code` is the code of the error catalogue, with which clients recognise infrastructure failures. */
export function rpcErrorOf(error: PalestraError): RpcError {
  const { code, status, retryable, retryAfterSeconds, message } = error;
  const data = { code, status, retryable, ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }) };
  return new RpcError(rpcCodeOf(error), message, data);
}

function rpcCodeOf({ code, status }: PalestraError): number {
  if (code === 'route_not_found') return ErrorCode.MethodNotFound;
  if (code === 'invalid_json') return ErrorCode.ParseError;
  if (status === 404 || status === 410) return SESSION_NOT_FOUND;
  return status < 500 && status !== 429 ? ErrorCode.InvalidParams : ErrorCode.InternalError;
}

/** Converts a `PalestraError`. Other errors are logged, not shown. */
export function asRpcError(error: unknown): unknown {
  return error instanceof PalestraError ? rpcErrorOf(error) : error;
}
