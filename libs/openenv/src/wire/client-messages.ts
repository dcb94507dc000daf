import { isObject, type JsonObject, type JsonValue, parseJson } from '@palestra/protocol';
import type { OpenEnvMessage } from './native.ts';
import { invalid, type Issue, issue, OpenEnvError } from './errors.ts';
import { pythonStr, pythonType, jsonErrorOf } from '@palestra/kit/python';

export type ClientMessage = OpenEnvMessage | { type: 'close' };

/** Parses one frame of a client with the checks of OpenEnv's server, which refuses unknown keys. Throws `OpenEnvError`. */
export function readMessage(text: string): ClientMessage {
  let message: JsonValue;
  try {
    message = parseJson(text);
  } catch {
    throw new OpenEnvError('INVALID_JSON', `Invalid JSON: ${jsonErrorOf(text)}`);
  }
  if (!isObject(message)) throw new OpenEnvError('SESSION_ERROR', `'${pythonType(message)}' object has no attribute 'get'`);
  const { type } = message;
  switch (type) {
    case 'step':
    case 'reset':
    case 'mcp':
      return readData(message, type);
    case 'state':
    case 'close':
      for (const key in message) if (key !== 'type') throw invalid(unknownKeys(message, 'type'));
      return { type };
    default:
      throw new OpenEnvError('UNKNOWN_TYPE', `Unknown message type: ${type === undefined ? '' : pythonStr(type)}`);
  }
}

function readData(message: JsonObject, type: 'reset' | 'step' | 'mcp'): OpenEnvMessage {
  const { data } = message;
  let hasUnknownKeys = false;
  for (const key in message) if (key !== 'type' && key !== 'data') hasUnknownKeys = true;
  if (isObject(data) && !hasUnknownKeys) return { type, data };
  const issues: Issue[] = [];
  if (data === undefined && type !== 'reset') issues.push(issue('missing', ['data'], message));
  else if (data !== undefined && !isObject(data)) issues.push(issue('dict_type', ['data'], data));
  if (hasUnknownKeys) issues.push(...unknownKeys(message, 'type', 'data'));
  if (issues.length > 0) throw invalid(issues);
  return { type, data: {} };
}

export const unknownKeys = (object: JsonObject, ...known: string[]): Issue[] =>
  Object.keys(object)
    .filter((key) => !known.includes(key))
    .map((key) => issue('extra_forbidden', [key], object[key]));
