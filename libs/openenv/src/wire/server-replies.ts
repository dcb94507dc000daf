import { STATUS_CODES } from 'node:http';
import { isObject, type JsonObject, type JsonValue, PalestraError, parseJson } from '@palestra/protocol';
import { detailIn } from '@palestra/outbound';

/** Parses the replies of OpenEnv servers (docs/reference/openenv.md#socket-messages, docs/reference/openenv.md#json-rpc). */

export function notOpenEnv(what: string, cause?: unknown): PalestraError {
  return new PalestraError('backend_invalid', { detail: `The OpenEnv server ${what}.`, cause });
}

/** Python writes NaN and Infinity as bare words. */
const PYTHON_FLOATS = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

/** Parses JSON of the server. `what`: for the error. Throws `backend_invalid`. */
export function readJson(text: string, what: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    try {
      return parseJson(text.replaceAll(PYTHON_FLOATS, (token) => (token.startsWith('"') ? token : 'null')));
    } catch (error) {
      throw notOpenEnv(`sent ${what} that is not JSON`, error);
    }
  }
}

/** Error codes. Other servers may have more. */
export type WireErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'FACTORY_ERROR'
  | 'SESSION_ERROR'
  | (string & {});

export interface WireError {
  type: 'error';
  code: WireErrorCode;
  message: string;
  /** pydantic's items of a VALIDATION_ERROR. */
  errors: object[];
}

export type Reply = { type: 'observation' | 'state' | 'mcp'; data: JsonObject } | WireError;

/** Parses a reply. Throws `backend_invalid`. */
export function readReply(text: string): Reply {
  const frame = readJson(text, 'a reply');
  if (!isObject(frame) || !isObject(frame['data'])) throw notOpenEnv('sent a reply that is not an OpenEnv message');
  const { type, data } = frame as { type: JsonValue; data: JsonObject };
  if (type === 'observation' || type === 'state' || type === 'mcp') return { type, data };
  if (type !== 'error') throw notOpenEnv('sent a reply of an unknown type');
  return {
    type,
    code: typeof data['code'] === 'string' ? data['code'] : 'SESSION_ERROR',
    message: typeof data['message'] === 'string' ? data['message'] : 'The environment server gave no reason.',
    errors: Array.isArray(data['errors']) ? data['errors'].filter((item): item is object => isObject(item)) : [],
  };
}

/** Whether a frame is an error. Servers write the type first. */
export const isErrorFrame = (frame: string): boolean => /^\s*\{\s*"type"\s*:\s*"error"/.test(frame);

/** Whether the server ends the session with this error. */
export const endsSession = ({ code }: WireError): boolean =>
  code === 'CAPACITY_REACHED' || code === 'FACTORY_ERROR' || code === 'SESSION_ERROR';

/** The text of an error, with fields and messages of a failed validation. */
export function errorText({ message, errors }: WireError): string {
  const items = errors.map((error) => {
    const { loc, msg } = error as { loc?: unknown; msg?: unknown };
    const path = Array.isArray(loc) ? loc.join('.') : '';
    return [path, typeof msg === 'string' ? msg : JSON.stringify(error)].filter(Boolean).join(': ');
  });
  return items.length === 0 ? message : `${message}: ${items.join('; ')}`;
}

/** The error of a session that was not opened. The engine queues on `capacity_exhausted`. */
export function openingError(error: WireError): PalestraError {
  switch (error.code) {
    case 'CAPACITY_REACHED':
      return new PalestraError('capacity_exhausted', { detail: error.message, retryAfterSeconds: 1, relayed: true });
    case 'FACTORY_ERROR':
      return new PalestraError('environment_failed', { detail: error.message, relayed: true });
    default:
      return new PalestraError('session_lost', {
        detail: `Session lost: the OpenEnv server refused it (${error.message}).`,
        relayed: true,
      });
  }
}

export function sessionLost(reason: string, cause?: unknown): PalestraError {
  return new PalestraError('session_lost', { detail: `Session lost: ${reason}`, cause });
}

/** The `detail` of an HTTP error, otherwise the name of its status. Other bodies are not passed on. */
export function httpErrorText(status: number, body: string): string {
  const detail = detailIn(body);
  if (detail === null) return STATUS_CODES[status] ?? `HTTP ${status}`;
  return (typeof detail === 'string' ? detail : JSON.stringify(detail)).slice(0, 2_000);
}

export interface RpcError {
  code: number;
  message: string;
  data: JsonObject;
}

/** Parses a JSON-RPC response. */
export function readRpc(response: JsonValue): { result: JsonObject } | { error: RpcError } {
  if (!isObject(response)) throw notOpenEnv('sent a JSON-RPC response that is not an object');
  const { error, result } = response;
  if (!isObject(error)) return { result: isObject(result) ? result : {} };
  return {
    error: {
      code: typeof error['code'] === 'number' ? error['code'] : 0,
      message: typeof error['message'] === 'string' ? error['message'] : 'no reason given',
      data: isObject(error['data']) ? error['data'] : {},
    },
  };
}
