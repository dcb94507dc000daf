import { type JsonValue, PalestraError } from '@palestra/protocol';

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
