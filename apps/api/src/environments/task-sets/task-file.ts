import { createReadStream } from 'node:fs';
import type { TaskFileFormat } from '@palestra/protocol';
import { splitLines } from './lines.ts';
import { parquetRecords } from './parquet-file.ts';
import { boundedJson, MAX_TASK_BYTES, taskFileError, type TaskRecord } from './task-record.ts';

/** The records in the order of the file. `name`: the file name in errors. Throws `invalid_task_file`. */
export function taskRecords(path: string, name: string, format: TaskFileFormat): AsyncGenerator<TaskRecord> {
  return format === 'parquet' ? parquetRecords(path, name) : jsonLines(path, name);
}

async function* jsonLines(path: string, name: string): AsyncGenerator<TaskRecord> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 0;
  const tooLong = (at: number) => taskFileError(name, `line ${at}`, `longer than ${MAX_TASK_BYTES / 1024 / 1024} MiB`);
  for await (const bytes of splitLines(createReadStream(path, { highWaterMark: 1024 * 1024 }), MAX_TASK_BYTES, tooLong)) {
    line += 1;
    const where = `line ${line}`;
    let text: string;
    try {
      text = decoder.decode(bytes).trim();
    } catch (error) {
      throw taskFileError(name, where, 'not UTF-8', error);
    }
    if (text === '') continue;
    try {
      yield { where, record: boundedJson(text) };
    } catch (error) {
      throw taskFileError(name, where, `not JSON (${(error as Error).message})`, error);
    }
  }
}
