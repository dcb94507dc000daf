import { type JsonValue, MAX_JSON_DEPTH, PalestraError, parseJson } from '@palestra/protocol';
import { assertBoundedJson } from '../../platform/http/json-bounds.ts';

/** Of one task as JSON: what a session's own request may have. */
export const MAX_TASK_BYTES = 16 * 1024 * 1024;
/** Members and elements of one task: the service parses it each time that somebody asks for it. */
const MAX_TASK_VALUES = 200_000;

/** The value of JSON text. Throws for text that is not JSON, or too deep or too large to be a task. */
export function boundedJson(text: string): JsonValue {
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_TASK_BYTES) throw new Error(`longer than ${MAX_TASK_BYTES / 1024 / 1024} MiB`);
  assertBoundedJson(bytes, MAX_JSON_DEPTH, MAX_TASK_VALUES);
  return parseJson(text);
}

/** A record of a file, and where it stands there: `line 3` or `row 3`. */
export interface TaskRecord {
  where: string;
  record: JsonValue;
}

/** Something is wrong with the file; nothing of it is kept. */
export const taskFileError = (file: string, where: string | null, problem: string, cause?: unknown): PalestraError =>
  new PalestraError('invalid_task_file', {
    detail: `${file}${where === null ? '' : `, ${where}`}: ${problem}. Nothing was stored; correct it and push again.`,
    cause,
  });
