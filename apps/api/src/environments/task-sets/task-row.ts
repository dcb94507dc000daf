import { type JsonObject, type JsonValue, stringifyJson, toPlainNumber } from '@palestra/protocol';
import { canonicalJson, specDigest } from './canonical-json.ts';
import { readPrompt } from './task-prompt.ts';

/** One row of an uploaded file, as stored. */
export interface TaskRow {
  taskId: string | null;
  /** JSON text */
  spec: string;
  /** null without a prompt, because such a task is never searched by its specification. */
  specHash: Buffer | null;
  /** JSON text of a list of messages. */
  prompt: string | null;
  /** The row's part of the content hash. */
  canonical: string;
  /** Columns beside `task_spec` that are not used. */
  ignored: string[];
}

const MAX_ID = 1_000;

/**
 * A task from a record of a file. `task_spec` is the specification; without this key the whole record is. `prompt` is the session's prompt,
 * `id` the task's id. Throws an Error with the reason if the record is invalid.
 */
export function readTaskRow(record: JsonValue): TaskRow {
  if (typeof record !== 'object' || record === null || Array.isArray(record) || 'isLosslessNumber' in record)
    throw new Error(`expected a JSON object, got ${kindOf(record)}`);
  const row = record as JsonObject;
  const isWrapped = Object.hasOwn(row, 'task_spec');
  const spec = isWrapped ? row['task_spec'] : row;
  if (spec === null) throw new Error('task_spec is null');
  const taskId = readId(row['id']);
  const messages = row['prompt'] === undefined || row['prompt'] === null ? null : readPrompt(row['prompt']);
  const specText = storable(stringifyJson(spec));
  const prompt = messages === null ? null : storable(stringifyJson(messages));
  return {
    taskId,
    spec: specText,
    specHash: messages === null ? null : specDigest(spec),
    prompt,
    canonical: canonicalJson([taskId, spec, messages]),
    ignored: isWrapped ? Object.keys(row).filter((key) => !['task_spec', 'prompt', 'id'].includes(key)) : [],
  };
}

function readId(value: JsonValue): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'object' && toPlainNumber(value) === null) throw new Error('id must be a text or a number');
  const id = typeof value === 'string' ? value : stringifyJson(value);
  if (id === '' || id.length > MAX_ID || id.includes('\0')) throw new Error(`id must have 1 to ${MAX_ID} characters and no NUL`);
  return id;
}

/** In JSON text a NUL is an escape, which text columns accept. A lone surrogate is not valid UTF-8, so it is escaped, too. */
const storable = (json: string): string => (json.isWellFormed() ? json : json.replaceAll(/\p{Surrogate}/gu, escaped));
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16)}`;

const kindOf = (value: JsonValue): string => (value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`);
