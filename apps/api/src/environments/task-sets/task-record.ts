import { type JsonValue, MAX_JSON_DEPTH, PalestraError, parseJson } from '@palestra/protocol';
import { assertBoundedJson } from '../../platform/http/json-bounds.ts';

/** Maximum of one task as JSON: the limit of a session's request. */
export const MAX_TASK_BYTES = 16 * 1024 * 1024;
/** Members and elements of one task, because the service parses it on each request. */
const MAX_TASK_VALUES = 200_000;

/** Parses JSON. Throws for text that is not JSON, or too deep or too large for a task. */
export function boundedJson(text: string): JsonValue {
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_TASK_BYTES) throw new Error(`longer than ${MAX_TASK_BYTES / 1024 / 1024} MiB`);
  assertBoundedJson(bytes, MAX_JSON_DEPTH, MAX_TASK_VALUES);
  return parseJson(text);
}

/** A record of a file and its position: `line 3` or `row 3`. */
export interface TaskRecord {
  where: string;
  record: JsonValue;
}

/** The error for an invalid file, of which nothing is stored. */
export const taskFileError = (file: string, where: string | null, problem: string, cause?: unknown): PalestraError =>
  new PalestraError('invalid_task_file', {
    detail: `${file}${where === null ? '' : `, ${where}`}: ${problem}. Nothing was stored; correct the file and push it again.`,
    cause,
  });
