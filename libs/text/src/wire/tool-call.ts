import { isObject, type JsonObject, type JsonValue, parseJson } from '@palestra/protocol';
import { checkPythonJson, PythonJsonError, isFalsy, NOT_JSON, pythonRepr, pythonStrip, pythonType } from '@palestra/kit/python';

export type ParsedToolCall =
  /** The tags contain no valid call. `error`: the text that SkyRL shows to its model. */
  | { type: 'malformed'; error: string }
  /** A call that no server accepts; it counts as failed. */
  | { type: 'impossible'; name: JsonValue; arguments: JsonObject; error: string }
  | { type: 'call'; name: string; arguments: JsonObject };

const [START, END] = ['<tool_call>', '</tool_call>'];

/**
 * Parses the first `<tool_call>` as SkyRL's OpenReward adapter does (docs/reference/skyrl.md#openreward-integration); null without one. The
 * end tag can be missing. Where that adapter raises an exception (a document that is not an object, integers of 4,300 digits), the error
 * has its text.
 */
export function parseToolCall(text: string): ParsedToolCall | null {
  const start = text.indexOf(START);
  if (start === -1) return null;
  const from = start + START.length;
  const end = text.indexOf(END, start);
  try {
    return readCall(pythonStrip(end === -1 ? text.slice(from) : text.slice(from, end)));
  } catch (error) {
    if (error instanceof PythonJsonError) return { type: 'malformed', error: error.message };
    throw error;
  }
}

function readCall(text: string): ParsedToolCall {
  const data = parseJson(checkPythonJson(text));
  if (!isObject(data)) return { type: 'malformed', error: `'${pythonType(data)}' object has no attribute 'get'` };
  const { name, arguments: input = {} } = data;
  if (isFalsy(name)) return { type: 'malformed', error: "missing 'name' field" };
  if (!isObject(input)) return { type: 'malformed', error: `arguments is not a dict: ${pythonType(input)}` };
  if (typeof name !== 'string') {
    return { type: 'impossible', name, arguments: input, error: `the name of a tool must be a string, not ${pythonRepr(name)}` };
  }
  // `NaN`, `Infinity`, or a number beyond the doubles such as `1e400`.
  if (holdsNonFinite(input)) return { type: 'impossible', name, arguments: {}, error: NOT_JSON };
  return { type: 'call', name, arguments: input };
}

function holdsNonFinite(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(holdsNonFinite);
  if (isObject(value)) return Object.values(value).some(holdsNonFinite);
  return ['inf', '-inf'].includes(pythonRepr(value)) && typeof value !== 'string';
}

export const toolResponse = (text: string): string => `<tool_response>\n${text}\n</tool_response>`;
