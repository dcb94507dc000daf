import type { TaskFileFormat } from '@palestra/protocol';
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { taskRecords } from './task-file.ts';
import { taskFileError, type TaskRecord } from './task-record.ts';
import { readTaskRow, type TaskRow } from './task-row.ts';
import { formatRow } from './task-rows.file.ts';

export interface TaskFileInput {
  path: string;
  format: TaskFileFormat;
  /** The file name in errors. */
  name: string;
  /** File to write the rows to, for `readRows`. */
  output: string;
  maxRows: number;
  /** Limit of the rows as text. */
  maxBytes: number;
}

/** Summary of a file whose rows are all valid. */
export interface TaskFileSummary {
  numTasks: number;
  /** Hex SHA-256 of the rows in canonical form. */
  contentHash: string;
  /** Columns that were not used. */
  ignored: string[];
}

const WRITE_CHARACTERS = 1_000_000;

/**
 * Reads a file of tasks, in a separate process (UntrustedWork). Throws `invalid_task_file` for the first invalid row, and when the file
 * exceeds a limit.
 */
export default async function readTaskFile(input: TaskFileInput): Promise<TaskFileSummary> {
  const hash = createHash('sha256');
  const ignored = new Set<string>();
  const output = await open(input.output, 'w', 0o600);
  let pending: string[] = [];
  let [numTasks, bytes, characters] = [0, 0, 0];
  const flush = async () => {
    const text = Buffer.from(pending.join(''));
    [pending, characters] = [[], 0];
    bytes += text.length;
    if (bytes > input.maxBytes)
      throw taskFileError(input.name, null, `its tasks as JSON are larger than ${input.maxBytes / 1024 ** 3} GiB`);
    await output.appendFile(text);
  };
  for await (const { where, record } of taskRecords(input.path, input.name, input.format)) {
    if (numTasks >= input.maxRows)
      throw taskFileError(input.name, where, `more than the ${input.maxRows} tasks that fit into this task set`);
    const row = rowOf({ where, record }, input.name);
    hash.update(row.canonical).update('\n');
    for (const column of row.ignored) ignored.add(column);
    numTasks += 1;
    const line = formatRow(row, where);
    pending.push(line);
    characters += line.length;
    if (characters >= WRITE_CHARACTERS) await flush();
  }
  await flush();
  await output.close();
  if (numTasks === 0) throw taskFileError(input.name, null, 'it has no tasks');
  return { numTasks, contentHash: hash.digest('hex'), ignored: [...ignored].toSorted() };
}

function rowOf({ where, record }: TaskRecord, file: string): TaskRow {
  try {
    return readTaskRow(record);
  } catch (error) {
    throw taskFileError(file, where, (error as Error).message, error);
  }
}
