import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type PromptFormat, taskFile, taskRows, type TaskFailure, type TaskRow } from '@palestra/exports';
import { printable, type Progress, startProgress } from '../output.ts';
import { sessionTaskSource } from '../session-task-source.ts';
import { withClient } from '../settings.ts';

export interface PrepareOptions {
  env: string[];
  split: string;
  output: string;
  maxTasks?: number;
  concurrency: number;
  promptFormat: PromptFormat;
}

/** Failing tasks are told one by one up to here, and all are counted. */
const MAX_TOLD = 20;

/** Writes the file beside its place and moves it there when whole; a failed task makes the exit status 1. */
export async function prepareTasks(options: PrepareOptions): Promise<void> {
  const progress = startProgress('tasks');
  const failures: TaskFailure[] = [];
  let written = 0;
  try {
    await withClient(async (client, signal) => {
      const rows = taskRows({
        source: sessionTaskSource(client),
        environments: options.env,
        split: options.split,
        maxTasks: options.maxTasks,
        concurrency: options.concurrency,
        signal,
        onTotal: (total) => progress.total(total),
        onFailure: (failure) => {
          failures.push(failure);
          if (failure.task_index !== null) progress.step();
          tell(progress, failure, failures.length);
        },
      });
      const counted = each(rows, () => {
        written += 1;
        progress.step();
      });
      await writeFile(options, counted, signal);
    });
  } finally {
    progress.stop();
  }
  process.stdout.write(`${written} tasks written to ${options.output}\n`);
  if (failures.length === 0) return;
  process.stderr.write(`palestra: ${failures.length} failed and are not in the file\n`);
  process.exitCode = 1;
}

async function writeFile({ output, promptFormat }: PrepareOptions, rows: AsyncIterable<TaskRow>, signal: AbortSignal): Promise<void> {
  await mkdir(path.dirname(path.resolve(output)), { recursive: true });
  const partial = `${output}.${process.pid}.partial`;
  try {
    await pipeline(taskFile(rows, output.endsWith('.parquet') ? 'parquet' : 'jsonl', promptFormat), createWriteStream(partial), { signal });
    await rename(partial, output);
  } catch (error) {
    await rm(partial, { force: true });
    throw signal.aborted ? signal.reason : error;
  }
}

async function* each<T>(items: AsyncIterable<T>, tell: () => void): AsyncGenerator<T> {
  for await (const item of items) {
    tell();
    yield item;
  }
}

function tell(progress: Progress, { environment, task_index, reason }: TaskFailure, count: number): void {
  const task = task_index === null ? environment : `${environment} task ${task_index}`;
  if (count <= MAX_TOLD) progress.line(`failed: ${printable(`${task}: ${reason}`)}`);
  else if (count === MAX_TOLD + 1) progress.line('further failures are only counted');
}
