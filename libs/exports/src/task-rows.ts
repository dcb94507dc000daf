import type { JsonObject, TaskFileFormat } from '@palestra/protocol';
import { columnsOf, readsOf, type RowFormat, rowOf } from './row-formats.ts';
import type { TaskParts } from './task-content.ts';
import { jsonLinesFile, parquetFile, parquetProblem } from './task-file.ts';
import { filtersByDifficulty, inOrder, type SelectedTasks, selectTasks, type TaskFilter, type TaskListing } from './task-selection.ts';

/** Source of tasks: sessions over HTTP in the command line, backends in the process of the server. */
export interface TaskSource extends TaskListing {
  /** Opens a session on the task, reads it and closes the session. `wanted`: parts that cost further requests. */
  readTask(
    environment: string,
    split: string,
    index: number,
    wanted: { messages: boolean; spec: boolean },
    signal: AbortSignal,
  ): Promise<TaskParts>;
}

export interface TaskFailure {
  environment: string;
  /** null: the tasks of the environment could not be listed. */
  task_index: number | null;
  reason: string;
}

export interface TaskFileOptions {
  source: TaskSource;
  /** `owner/name`, written to the rows unchanged. */
  environments: string[];
  split: string;
  format: RowFormat;
  file: TaskFileFormat;
  filter: TaskFilter;
  /** Number of concurrent sessions. */
  concurrency: number;
  signal: AbortSignal;
  /** Called once, when the tasks are selected. */
  onTotal(total: number): void;
  onRow(): void;
  onFailure(failure: TaskFailure): void;
}

/** Streams the file in constant memory. Throws RangeError for a Parquet file of a format without one (`isParquetFormat`). */
export function taskFile(options: TaskFileOptions): AsyncGenerator<Uint8Array> {
  const rows = taskRows(options);
  if (options.file === 'jsonl') return jsonLinesFile(rows);
  const columns = columnsOf(options.format, filtersByDifficulty(options.filter));
  if (columns === null) throw new RangeError(`${options.format} has no Parquet files`);
  return parquetFile(rows, columns);
}

/**
 * Rows in the order of environments and indexes, or shuffled. Reads `concurrency` tasks at a time and no further ahead of the reader. A task
 * that fails is reported and skipped; an abort ends the export, and so does a split to exclude that cannot be read.
 */
async function* taskRows(options: TaskFileOptions): AsyncGenerator<JsonObject> {
  const { signal, filter } = options;
  const selected = await selectTasks({
    ...options,
    onFailure: (environment, error) => options.onFailure({ environment, task_index: null, reason: reasonOf(error) }),
  });
  options.onTotal(selected.reduce((sum, { indices }) => sum + indices.length, 0));
  const window: Promise<JsonObject | null>[] = [];
  for (const { of, index } of inOrder(selected, filter.shuffleSeed)) {
    window.push(readRow(options, of, index));
    if (window.length < options.concurrency) continue;
    const row = await window.shift()!;
    signal.throwIfAborted();
    if (row === null) continue;
    options.onRow();
    yield row;
  }
  for (const pending of window) {
    const row = await pending;
    signal.throwIfAborted();
    if (row === null) continue;
    options.onRow();
    yield row;
  }
}

/** Never rejects, because a rejection that is not awaited yet would end the process. */
async function readRow(options: TaskFileOptions, { environment, difficulty }: SelectedTasks, index: number): Promise<JsonObject | null> {
  const { source, split, format, file, signal, onFailure } = options;
  if (signal.aborted) return null;
  try {
    const parts = await source.readTask(environment, split, index, readsOf(format), signal);
    const row = rowOf({ ...parts, environment, split, index, difficulty: difficulty?.get(index) ?? null }, format);
    const problem = file === 'parquet' ? parquetProblem(row) : null;
    if (problem !== null) throw new Error(problem);
    return row;
  } catch (error) {
    if (!signal.aborted) onFailure({ environment, task_index: index, reason: reasonOf(error) });
    return null;
  }
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 2_000);
}
