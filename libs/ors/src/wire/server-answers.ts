import {
  isObject,
  type JsonObject,
  type JsonValue,
  type MessageBlock,
  PalestraError,
  parseJson,
  stringifyJson,
  toFiniteNumber,
  type ToolsAnswer,
  type ToolSpec,
  toPlainNumber,
} from '@palestra/protocol';
import type { ToolCallResult } from '@palestra/session';

/** Parses answers of servers and adds what older ones leave out (docs/reference/ors.md#older-servers). */

function invalid(what: string): PalestraError {
  return new PalestraError('backend_invalid', { detail: `The environment server sent ${what} that does not follow its protocol.` });
}

/** Python writes NaN and Infinity as bare words. */
const PYTHON_FLOATS = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

export function parseAnswer(text: string, what: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    try {
      return parseJson(text.replaceAll(PYTHON_FLOATS, (token) => (token.startsWith('"') ? token : 'null')));
    } catch {
      throw invalid(what);
    }
  }
}

/** Servers before 0.1.127 send no reason; guessed from the text (docs/reference/ors.md#error-reasons). */
export function reasonOf(error: string): string {
  if (error.startsWith('Tool name collision')) return 'name_collision';
  if (error.startsWith('Tool input validation error')) return 'input_validation';
  if (error.includes('is not a valid tool')) return 'not_found';
  return 'input_validation';
}

function completeBlock(block: JsonValue): boolean {
  if (!isObject(block)) return false;
  let changed = false;
  const nullable = block['type'] === 'reasoning' ? ['signature', 'detail'] : ['detail'];
  for (const key of nullable) {
    if (key in block) continue;
    block[key] = null;
    changed = true;
  }
  if (Array.isArray(block['blocks'])) for (const inner of block['blocks']) changed = completeBlock(inner) || changed;
  return changed;
}

function completeOutput(output: JsonObject): boolean {
  let changed = false;
  if (!Array.isArray(output['blocks'])) throw invalid('a tool result');
  for (const block of output['blocks']) changed = completeBlock(block) || changed;
  for (const [key, missing] of [
    ['metadata', null],
    ['reward', null],
    ['finished', false],
  ] as const) {
    if (key in output) continue;
    output[key] = missing;
    changed = true;
  }
  // `1e400` is JSON but parses as Infinity, which is not a reward.
  if (toPlainNumber(output['reward']) !== null && toFiniteNumber(output['reward']) === null) {
    output['reward'] = null;
    changed = true;
  }
  return changed;
}

/** Parses a `RunToolOutput`. Keeps the text of a complete one. */
export function readToolResult(text: string): ToolCallResult {
  const result = parseAnswer(text, 'a tool result');
  if (!isObject(result)) throw invalid('a tool result');
  if (result['ok'] === false) {
    const error = typeof result['error'] === 'string' ? result['error'] : String(result['error'] ?? '');
    const reasonSent = typeof result['reason'] === 'string' ? result['reason'] : null;
    const reason = reasonSent ?? reasonOf(error);
    const complete = reasonSent !== null && typeof result['error'] === 'string';
    return { text: complete ? text : stringifyJson({ ...result, error, reason }), ok: false, reason, reward: null, finished: false };
  }
  const output = result['output'];
  if (result['ok'] !== true || !isObject(output)) throw invalid('a tool result');
  const changed = completeOutput(output);
  return {
    // A bare NaN is not JSON, so the text is serialised again.
    text: changed || !isJson(text) ? stringifyJson(result) : text,
    ok: true,
    reason: null,
    reward: toFiniteNumber(output['reward']),
    finished: output['finished'] === true,
  };
}

function isJson(text: string): boolean {
  if (!text.includes('NaN') && !text.includes('Infinity')) return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function readBlocks(text: string): MessageBlock[] {
  const blocks = parseAnswer(text, 'a prompt');
  if (!Array.isArray(blocks)) throw invalid('a prompt');
  for (const block of blocks) completeBlock(block);
  return blocks as MessageBlock[];
}

export function readMessages(text: string): JsonValue[] {
  const messages = parseAnswer(text, 'messages');
  if (!Array.isArray(messages)) throw invalid('messages');
  for (const message of messages) completeBlock(message);
  return messages;
}

/** Clients accept exactly these keys and expect a schema of `type: object`. */
function readToolSpec(tool: JsonValue): ToolSpec {
  if (!isObject(tool) || typeof tool['name'] !== 'string') throw invalid('a tool list');
  const schema = isObject(tool['input_schema']) ? tool['input_schema'] : null;
  return {
    name: tool['name'],
    description: typeof tool['description'] === 'string' ? tool['description'] : '',
    input_schema: schema === null || 'type' in schema ? schema : { ...schema, type: 'object' },
  };
}

/** Missing keys stay missing (docs/reference/ors.md#objects). */
export function readTools(text: string): ToolsAnswer {
  const answer = parseAnswer(text, 'a tool list');
  if (!isObject(answer) || !Array.isArray(answer['tools'])) throw invalid('a tool list');
  return { ...answer, tools: answer['tools'].map(readToolSpec) };
}
