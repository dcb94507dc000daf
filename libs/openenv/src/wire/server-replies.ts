import { STATUS_CODES } from 'node:http';
import { isObject, type JsonObject, type JsonValue, PalestraError, parseJson } from '@palestra/protocol';
import { detailIn } from '@palestra/outbound';

/** What every part of this folder reads of OpenEnv's wire (openenv-wire.md sections 3, 4 and 8). */

export function notOpenEnv(what: string, cause?: unknown): PalestraError {
  return new PalestraError('backend_invalid', { detail: `The OpenEnv server ${what}.`, cause });
}

/** Python writes the floats that JSON lacks as bare words. */
const PYTHON_FLOATS = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

/** A JSON document of the server; `what` is what it should have been. Throws `backend_invalid`. */
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

/** The codes of error frames; servers of other makers may have more. */
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
  /** Of a VALIDATION_ERROR: pydantic's items. */
  errors: object[];
}

export type Reply = { type: 'observation' | 'state' | 'mcp'; data: JsonObject } | WireError;

/** Throws `backend_invalid` on anything else than one of the four replies. */
export function readReply(text: string): Reply {
  const frame = readJson(text, 'a reply');
  if (!isObject(frame) || !isObject(frame['data'])) throw notOpenEnv('sent a reply that is none');
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

/** Whether a frame is an error, by its beginning: the servers write the type first. */
export const isErrorFrame = (frame: string): boolean => /^\s*\{\s*"type"\s*:\s*"error"/.test(frame);

/** Whether the server ends the session with this error; all others leave it as it was. */
export const endsSession = ({ code }: WireError): boolean =>
  code === 'CAPACITY_REACHED' || code === 'FACTORY_ERROR' || code === 'SESSION_ERROR';

/** An error frame in words: of a failed validation, what is wrong and where. */
export function errorText({ message, errors }: WireError): string {
  const items = errors.map((error) => {
    const { loc, msg } = error as { loc?: unknown; msg?: unknown };
    const place = Array.isArray(loc) ? loc.join('.') : '';
    return [place, typeof msg === 'string' ? msg : JSON.stringify(error)].filter(Boolean).join(': ');
  });
  return items.length === 0 ? message : `${message}: ${items.join('; ')}`;
}

/** Why the server gave no session. `capacity_exhausted` is for the engine to queue on. */
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

export function sessionLost(why: string, cause?: unknown): PalestraError {
  return new PalestraError('session_lost', { detail: `Session lost: ${why}`, cause });
}

/** `detail` of a refusal over HTTP, else the name of its status: no other body is passed on. */
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

/** `result` or `error` of a JSON-RPC response. */
export function readRpc(response: JsonValue): { result: JsonObject } | { error: RpcError } {
  if (!isObject(response)) throw notOpenEnv('sent a JSON-RPC response that is none');
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
