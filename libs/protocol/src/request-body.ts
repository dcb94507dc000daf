import { PalestraError } from './error-catalogue.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { isObject, parseJson, stringifyJson, toPlainNumber } from './lossless.ts';
import type { CallBody, CreateBody, GroupCandidate, Message } from './episode.schema.ts';

/**
 * Parses request bodies of sessions and reports errors as pydantic does (docs/reference/ors.md#validation-errors): status 422, `detail`
 * is a list of `{type, loc, msg, input}`.
 */
interface Issue {
  type: string;
  loc: (string | number)[];
  msg: string;
  input: JsonValue;
  ctx?: JsonObject;
}

function fail(issues: Issue[], code: 'invalid_body' | 'invalid_json' = 'invalid_body'): never {
  // The echoed input may lose the written form of its numbers.
  throw new PalestraError(code, { detail: JSON.parse(stringifyJson(issues)) as object[] });
}

/** Keeps a byte order mark, which is no JSON. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Parses the JSON of a body. Throws the `json_invalid` of pydantic. An empty body is no body. */
export function parseBody(raw: Uint8Array | null, parse: (text: string) => JsonValue = parseJson): JsonValue {
  if (raw === null || raw.length === 0) return undefined;
  try {
    return parse(utf8.decode(raw));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const position = Number(/position (\d+)/.exec(message)?.[1] ?? 0);
    return fail(
      [{ type: 'json_invalid', loc: ['body', position], msg: 'JSON decode error', input: {}, ctx: { error: message } }],
      'invalid_json',
    );
  }
}

/** Reads the fields of a body and collects the errors. */
class BodyReader {
  readonly issues: Issue[] = [];
  readonly #body: JsonObject;

  constructor(body: JsonValue) {
    if (body === undefined) fail([{ type: 'missing', loc: ['body'], msg: 'Field required', input: null }]);
    if (!isObject(body)) {
      const msg = 'Input should be a valid dictionary or object to extract fields from';
      fail([{ type: 'model_attributes_type', loc: ['body'], msg, input: body }]);
    }
    this.#body = body;
  }

  get body(): JsonObject {
    return this.#body;
  }

  add(type: string, field: string, msg: string, input: JsonValue): null {
    this.issues.push({ type, loc: ['body', field], msg, input });
    return null;
  }

  #missing(field: string): null {
    return this.add('missing', field, 'Field required', this.#body);
  }

  string(field: string, required: boolean): string | null {
    const value = Object.hasOwn(this.#body, field) ? this.#body[field] : undefined;
    if (value === undefined) return required ? this.#missing(field) : null;
    if (typeof value === 'string') return value;
    if (value === null && !required) return null;
    return this.add('string_type', field, 'Input should be a valid string', value);
  }

  /** Accepts what pydantic accepts in lax mode: `3`, `3.0`, `"3"`. */
  integer(field: string, required: boolean): number | null {
    const value = Object.hasOwn(this.#body, field) ? this.#body[field] : undefined;
    if (value === undefined) return required ? this.#missing(field) : null;
    if (value === null && !required) return null;
    const number = typeof value === 'string' && /^\s*[-+]?\d+\s*$/.test(value) ? Number(value) : toPlainNumber(value);
    if (number !== null && Number.isSafeInteger(number)) return number;
    if (typeof value === 'string') {
      return this.add('int_parsing', field, 'Input should be a valid integer, unable to parse string as an integer', value);
    }
    if (number !== null && !Number.isInteger(number)) {
      return this.add('int_from_float', field, 'Input should be a valid integer, got a number with a fractional part', value);
    }
    return this.add('int_type', field, 'Input should be a valid integer', value);
  }

  object(field: string, required: boolean): JsonObject | null {
    const value = Object.hasOwn(this.#body, field) ? this.#body[field] : undefined;
    if (value === undefined) return required ? this.#missing(field) : null;
    if (value === null && !required) return null;
    if (isObject(value)) return value;
    return this.add('dict_type', field, 'Input should be a valid dictionary', value);
  }

  array(field: string): JsonValue[] {
    const value = Object.hasOwn(this.#body, field) ? this.#body[field] : undefined;
    if (value === undefined) this.#missing(field);
    else if (Array.isArray(value)) return value;
    else this.add('list_type', field, 'Input should be a valid list', value);
    return [];
  }

  forbidOthers(...known: string[]): void {
    for (const key of Object.keys(this.#body)) {
      if (!known.includes(key)) this.add('extra_forbidden', key, 'Extra inputs are not permitted', this.#body[key]);
    }
  }

  finish(): void {
    if (this.issues.length > 0) fail(this.issues);
  }
}

export function readSplitBody(body: JsonValue): { split: string } {
  const reader = new BodyReader(body);
  const split = reader.string('split', true);
  reader.finish();
  return { split: split! };
}

export function readTaskBody(body: JsonValue): { split: string; index: number } {
  const reader = new BodyReader(body);
  const split = reader.string('split', true);
  const index = reader.integer('index', true);
  reader.finish();
  return { split: split!, index: index! };
}

export function readTaskRangeBody(body: JsonValue): { split: string; start: number | null; stop: number | null } {
  const reader = new BodyReader(body);
  const split = reader.string('split', true);
  const start = reader.integer('start', false);
  const stop = reader.integer('stop', false);
  reader.finish();
  return { split: split!, start, stop };
}

/** Accepts an empty body or an object with `env` and `task_id`. Ignores other keys. */
export function readCreateSessionBody(body: JsonValue): { env: JsonObject | null; taskId: string | null } {
  if (body === undefined || body === null) return { env: null, taskId: null };
  const reader = new BodyReader(body);
  const env = reader.object('env', false);
  const taskId = reader.string('task_id', false);
  reader.finish();
  return { env, taskId };
}

export function readCreateBody(body: JsonValue): CreateBody {
  const reader = new BodyReader(body);
  const spec = reader.object('task_spec', false);
  const split = reader.string('split', false);
  const index = reader.integer('index', false);
  const envName = reader.string('env_name', false);
  const toolsetName = reader.string('toolset_name', false);
  reader.forbidOthers('task_spec', 'split', 'index', 'env_name', 'toolset_name');
  reader.finish();
  const bySpec = spec !== null && split === null && index === null;
  const byIndex = spec === null && split !== null && index !== null;
  if (!bySpec && !byIndex) {
    const msg = 'Value error, Provide either task_spec or both split and index, not both/neither';
    fail([{ type: 'value_error', loc: ['body'], msg, input: reader.body, ctx: { error: {} } }]);
  }
  const common = { env_name: envName, toolset_name: toolsetName };
  return bySpec ? { task_spec: spec, ...common } : { split: split!, index: index!, ...common };
}

export function readCallBody(body: JsonValue): CallBody {
  const reader = new BodyReader(body);
  const name = reader.string('name', true);
  const input = reader.object('input', true);
  const taskId = reader.string('task_id', false);
  reader.forbidOthers('name', 'input', 'task_id');
  reader.finish();
  return { name: name!, input: input!, task_id: taskId };
}

export function readScoreGroupBody(body: JsonValue): { candidates: GroupCandidate[]; taskId: string | null } {
  const reader = new BodyReader(body);
  const candidates = reader.array('candidates');
  const taskId = reader.string('task_id', false);
  reader.forbidOthers('candidates', 'task_id');
  candidates.forEach((candidate, index) => checkCandidate(candidate, ['body', 'candidates', index], reader.issues));
  reader.finish();
  return { candidates: candidates as GroupCandidate[], taskId };
}

function checkCandidate(candidate: JsonValue, loc: Issue['loc'], issues: Issue[]): void {
  if (!isObject(candidate)) {
    const msg = 'Input should be a valid dictionary or object to extract fields from';
    issues.push({ type: 'model_attributes_type', loc, msg, input: candidate });
    return;
  }
  const { messages } = candidate;
  if (messages === undefined) issues.push({ type: 'missing', loc: [...loc, 'messages'], msg: 'Field required', input: candidate });
  else if (!Array.isArray(messages)) {
    issues.push({ type: 'list_type', loc: [...loc, 'messages'], msg: 'Input should be a valid list', input: messages });
  } else messages.forEach((message: JsonValue, index) => checkMessage(message, [...loc, 'messages', index], issues));
  for (const key of Object.keys(candidate)) {
    if (key !== 'messages' && key !== 'metadata') {
      issues.push({ type: 'extra_forbidden', loc: [...loc, key], msg: 'Extra inputs are not permitted', input: candidate[key] });
    }
  }
}

/** The role of the messages that may contain a block of this type. Text and images are allowed everywhere. */
const blockRoles: Record<string, Message['role'][]> = {
  text: ['system', 'user', 'assistant'],
  image: ['system', 'user', 'assistant'],
  reasoning: ['assistant'],
  tool_call: ['assistant'],
  tool_result: ['user'],
};
const PLACEMENT =
  "reasoning and tool_call blocks belong in 'assistant' turns, tool_result blocks in 'user' turns (Anthropic placement semantics).";

function checkMessage(message: JsonValue, loc: Issue['loc'], issues: Issue[]): void {
  if (!isObject(message) || typeof message['role'] !== 'string' || !Array.isArray(message['blocks'])) {
    const field = !isObject(message) ? [] : typeof message['role'] === 'string' ? ['blocks'] : ['role'];
    issues.push({ type: 'missing', loc: [...loc, ...field], msg: 'Field required', input: message });
    return;
  }
  const { role, blocks } = message as { role: Message['role']; blocks: JsonValue[] };
  if (!['system', 'user', 'assistant'].includes(role)) {
    issues.push({ type: 'literal_error', loc: [...loc, 'role'], msg: "Input should be 'system', 'user' or 'assistant'", input: role });
    return;
  }
  blocks.forEach((block, index) => {
    const type = isObject(block) ? block['type'] : undefined;
    const roles = typeof type === 'string' && Object.hasOwn(blockRoles, type) ? blockRoles[type] : undefined;
    if (roles === undefined) {
      const msg = "Input should be a block of type 'text', 'image', 'reasoning', 'tool_call' or 'tool_result'";
      issues.push({ type: 'union_tag_invalid', loc: [...loc, 'blocks', index], msg, input: block });
    } else if (!roles.includes(role)) {
      const msg = `Value error, A '${String(type)}' block is not valid in a '${role}' message: ${PLACEMENT}`;
      issues.push({ type: 'value_error', loc, msg, input: message, ctx: { error: {} } });
    }
  });
}
