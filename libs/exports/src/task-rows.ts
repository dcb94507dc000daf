import type { MessageBlock, ToolSpec } from '@palestra/protocol';
import { type ChatMessage, taskMessages } from './task-prompt.ts';

/** Source of tasks: sessions over HTTP in the command line, backends in the process of the server. */
export interface TaskSource {
  numTasks(environment: string, split: string, signal: AbortSignal): Promise<number>;
  /** Opens a session on the task, reads it and closes the session. */
  readTask(environment: string, split: string, index: number, signal: AbortSignal): Promise<{ prompt: MessageBlock[]; tools: ToolSpec[] }>;
}

export interface TaskRow {
  messages: ChatMessage[];
  env_name: string;
  split: string;
  task_index: number;
}

export interface TaskFailure {
  environment: string;
  /** null: counting the tasks of the environment failed. */
  task_index: number | null;
  reason: string;
}

export interface TaskRowsOptions {
  source: TaskSource;
  /** `owner/name`, written to the rows unchanged. */
  environments: string[];
  split: string;
  /** Per environment. */
  maxTasks?: number;
  /** Number of concurrent sessions. */
  concurrency: number;
  signal: AbortSignal;
  /** Called once, after all environments have reported their counts. */
  onTotal?(total: number): void;
  onFailure(failure: TaskFailure): void;
}

/**
 * Rows in the order of environments and indexes. Reads `concurrency` tasks at a time and no further ahead of the reader. A task that
 * fails is reported and skipped; only an abort ends the export.
 */
export async function* taskRows(options: TaskRowsOptions): AsyncGenerator<TaskRow> {
  const window: Promise<TaskRow | null>[] = [];
  for (const { environment, index } of taskList(options, await countTasks(options))) {
    window.push(readRow(options, environment, index));
    if (window.length < options.concurrency) continue;
    const row = await window.shift();
    options.signal.throwIfAborted();
    if (row) yield row;
  }
  for (const pending of window) {
    const row = await pending;
    options.signal.throwIfAborted();
    if (row) yield row;
  }
}

async function countTasks(options: TaskRowsOptions): Promise<number[]> {
  const { source, environments, split, maxTasks = Infinity, signal } = options;
  const counts: number[] = [];
  for (const environment of environments) {
    try {
      counts.push(Math.min(await source.numTasks(environment, split, signal), maxTasks));
    } catch (error) {
      signal.throwIfAborted();
      options.onFailure({ environment, task_index: null, reason: reasonOf(error) });
      counts.push(0);
    }
  }
  options.onTotal?.(counts.reduce((sum, count) => sum + count, 0));
  return counts;
}

function* taskList({ environments }: TaskRowsOptions, counts: number[]): Generator<{ environment: string; index: number }> {
  for (const [position, environment] of environments.entries()) {
    for (let index = 0; index < counts[position]!; index += 1) yield { environment, index };
  }
}

/** Never rejects, because a rejection that is not awaited yet would end the process. */
async function readRow({ source, split, signal, onFailure }: TaskRowsOptions, environment: string, index: number): Promise<TaskRow | null> {
  if (signal.aborted) return null;
  try {
    const { prompt, tools } = await source.readTask(environment, split, index, signal);
    return { messages: taskMessages(prompt, tools), env_name: environment, split, task_index: index };
  } catch (error) {
    if (!signal.aborted) onFailure({ environment, task_index: index, reason: reasonOf(error) });
    return null;
  }
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 2_000);
}
