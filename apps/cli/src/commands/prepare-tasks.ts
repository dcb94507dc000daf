import type { PalestraClient } from '@palestra/client';
import { isParquetFormat, type PromptFormat, rowFormatOf, taskFile, type TaskFailure, type TaskFilter } from '@palestra/exports';
import {
  JSON_LINES_ROW_FORMATS,
  MAX_EXCLUDED_KEYS,
  type TaskExportView,
  type TaskFileFormat,
  type TaskRowFormat,
} from '@palestra/protocol';
import { readExcluded } from '../excluded-tasks.ts';
import { type OutputFormat, isOutputFormat } from '../output-format.ts';
import { printable, printOne } from '../output.ts';
import { type Progress, startProgress } from '../progress.ts';
import { exportOnServer } from '../server-export.ts';
import { sessionTaskSource } from '../session-task-source.ts';
import { UsageError } from '../server-settings.ts';
import { withClient } from '../settings.ts';
import { writeFileAtomically } from '../atomic-write.ts';

interface Options {
  env: string[];
  split: string;
  /** The file. */
  out?: string;
  /** The output format, or the file: `--output FILE` is the older spelling of `--out FILE`. */
  output: string;
  format: TaskRowFormat;
  minReward?: number;
  maxReward?: number;
  minRollouts?: number;
  exclude?: string[];
  shuffleSeed?: number;
  maxTasks?: number;
  /** If set, this command reads the tasks with this many sessions, even if the server could write the file. */
  concurrency?: number;
  promptFormat: PromptFormat;
}

type PrepareOptions = Omit<Options, 'out' | 'output' | 'exclude'> & { out: string; filter: TaskFilter };

/** At most this many failed tasks are printed; all are counted. */
const MAX_PRINTED = 20;
const DEFAULT_CONCURRENCY = 32;

interface Outcome {
  written: number;
  failed: number;
}

/**
 * Writes the tasks of an environment to a file, or nothing if no task can be read. Exit status 1 if a task fails. A Palestra server reads the tasks and sends the file; from
 * any other ORS server this command reads them with sessions. The rows are the same.
 */
export async function prepareTasks({ out: file, output, exclude = [], ...rest }: Options): Promise<void> {
  const format: OutputFormat = isOutputFormat(output) ? output : 'table';
  const out = file ?? (isOutputFormat(output) ? `tasks.${JSON_LINES_ROW_FORMATS.includes(rest.format) ? 'jsonl' : 'parquet'}` : output);
  if (formatOf(out) === 'parquet' && !isParquetFormat(rest.format))
    throw new UsageError(`${rest.format} reads JSON lines only. Use a file that ends in .jsonl.`);
  const { minReward, maxReward, minRollouts, shuffleSeed, maxTasks } = rest;
  const filter = { minReward, maxReward, minRollouts, shuffleSeed, maxTasks, ...(await readExcluded(exclude)) };
  const options: PrepareOptions = { ...rest, out, filter };
  const progress = startProgress('tasks');
  let outcome: Outcome;
  try {
    outcome = await withClient(async (client, signal) => {
      const onServer =
        options.concurrency === undefined && client.isOneOrigin ? await exportFromServer(options, client, signal, progress) : null;
      return onServer ?? readBySessions(options, client, signal, progress);
    });
  } finally {
    progress.stop();
  }
  const { written, failed } = outcome;
  await printOne({ output: format }, { written, failed, out: options.out }, () => {
    if (written > 0 || failed === 0) process.stdout.write(`${written} tasks written to ${options.out}\n`);
  });
  if (failed === 0) return;
  process.stderr.write(
    written > 0
      ? `palestra: ${failed} tasks failed and are not in the file\n`
      : `palestra: no task could be read; ${options.out} was not written\n`,
  );
  process.exitCode = 1;
}

async function exportFromServer(
  options: PrepareOptions,
  client: PalestraClient,
  signal: AbortSignal,
  progress: Progress,
): Promise<Outcome | null> {
  let counted = 0;
  const onProgress = ({ total, written, failed }: TaskExportView) => {
    if (total === null) return;
    progress.total(total);
    for (; counted < Math.min(total, written + failed); counted += 1) progress.step();
  };
  const { env, split, out, promptFormat, filter } = options;
  if (filter.excludeKeys.length > MAX_EXCLUDED_KEYS) return null;
  const request = {
    environments: env,
    split,
    format: formatOf(out),
    row_format: options.format,
    prompt_format: promptFormat,
    min_reward: filter.minReward,
    max_reward: filter.maxReward,
    min_rollouts: filter.minRollouts,
    exclude: filter.exclude,
    exclude_keys: filter.excludeKeys,
    shuffle_seed: filter.shuffleSeed,
    max_tasks: filter.maxTasks,
  };
  const view = await exportOnServer(client, request, signal, onProgress);
  if (view === null) return null;
  view.failures.forEach((failure, index) => printFailure(progress, failure, index + 1));
  if (view.written > 0 || view.failed === 0) await writeFileAtomically(out, await client.exports.download(view.id), signal);
  return view;
}

async function readBySessions(options: PrepareOptions, client: PalestraClient, signal: AbortSignal, progress: Progress): Promise<Outcome> {
  const outcome: Outcome = { written: 0, failed: 0 };
  const file = taskFile({
    source: sessionTaskSource(client),
    environments: options.env,
    split: options.split,
    format: rowFormatOf(options.format, options.promptFormat),
    file: formatOf(options.out),
    filter: options.filter,
    concurrency: options.concurrency ?? DEFAULT_CONCURRENCY,
    signal,
    onTotal: (total) => progress.total(total),
    onRow: () => {
      outcome.written += 1;
      progress.step();
    },
    onFailure: (failure) => {
      outcome.failed += 1;
      if (failure.task_index !== null) progress.step();
      printFailure(progress, failure, outcome.failed);
    },
  });
  await writeFileAtomically(options.out, unlessNothing(file, outcome), signal).catch((error: unknown) => {
    if (!(error instanceof NothingWritten)) throw error;
  });
  return outcome;
}

/** Ends a file without any task, so that it does not replace an existing one. */
class NothingWritten extends Error {}

async function* unlessNothing(bytes: AsyncIterable<Uint8Array>, outcome: Outcome): AsyncGenerator<Uint8Array> {
  yield* bytes;
  if (outcome.written === 0 && outcome.failed > 0) throw new NothingWritten();
}

const formatOf = (file: string): TaskFileFormat => (file.endsWith('.parquet') ? 'parquet' : 'jsonl');

function printFailure(progress: Progress, { environment, task_index, reason }: TaskFailure, count: number): void {
  const task = task_index === null ? environment : `${environment} task ${task_index}`;
  if (count <= MAX_PRINTED) progress.line(`failed: ${printable(`${task}: ${reason}`)}`);
  else if (count === MAX_PRINTED + 1) progress.line('further failures are only counted');
}
