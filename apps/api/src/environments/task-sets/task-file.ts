import { createReadStream } from 'node:fs';
import { parseJson } from '@palestra/protocol';
import { parquetRecords } from './parquet-file.ts';
import { taskFileError, type TaskRecord } from './task-record.ts';

export const TASK_FILE_FORMATS = ['jsonl', 'parquet'] as const;
export type TaskFileFormat = (typeof TASK_FILE_FORMATS)[number];

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const NEWLINE = 0x0a;

/** The records in the order of the file. `name` is what the client calls it. Throws `invalid_task_file`. */
export function taskRecords(path: string, name: string, format: TaskFileFormat): AsyncGenerator<TaskRecord> {
  return format === 'parquet' ? parquetRecords(path, name) : jsonLines(path, name);
}

async function* jsonLines(path: string, name: string): AsyncGenerator<TaskRecord> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 0;
  for await (const bytes of linesOf(createReadStream(path, { highWaterMark: 1024 * 1024 }), name)) {
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
      yield { where, record: parseJson(text) };
    } catch (error) {
      if (error instanceof SyntaxError) throw taskFileError(name, where, `not JSON (${error.message})`, error);
      throw error;
    }
  }
}

async function* linesOf(pieces: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let waiting = 0;
  let lines = 0;
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE, from); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      const tail = piece.subarray(from, end);
      yield rest.length === 0 ? tail : Buffer.concat([...rest, tail]);
      lines += 1;
      [rest, waiting, from] = [[], 0, end + 1];
    }
    rest.push(piece.subarray(from));
    waiting += piece.length - from;
    if (waiting > MAX_LINE_BYTES) throw taskFileError(name, `line ${lines + 1}`, `longer than ${MAX_LINE_BYTES / 1024 / 1024} MiB`);
  }
  if (waiting > 0) yield Buffer.concat(rest);
}
