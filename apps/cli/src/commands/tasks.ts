import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { TaskFile } from '@palestra/client';
import { SPLIT_TYPES, type SplitType } from '@palestra/protocol';
import { environmentName } from '../environment-name.ts';
import { printable, type Printed, printList, printOne, printTable } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';
import { noteUnpromoted } from '../unpromoted-version.ts';

interface PushOptions extends Printed {
  split?: string[];
  type?: string[];
}

export async function pushTasks(target: string, files: string[], options: PushOptions): Promise<void> {
  const taskFiles = await taskFilesOf(files, options);
  const { environment, pushed } = await withClient(async (client) => {
    const environment = await environmentName(client, target);
    const onSplit = ({ name, num_tasks }: { name: string; num_tasks: number }) =>
      process.stderr.write(`${printable(name)}: ${num_tasks} tasks stored\n`);
    const pushed = await client.taskSets.push(environment, taskFiles, onSplit);
    await noteUnpromoted(client, environment, pushed.version);
    return { environment, pushed };
  });
  const { version, created, ignored, task_set: set } = pushed;
  for (const [split, columns] of Object.entries(ignored))
    process.stderr.write(printable(`${split}: only task_spec, prompt and id are used; ignored columns: ${columns.join(', ')}`) + '\n');
  await printOne(options, pushed, () => {
    printTable(
      ['split', 'type', 'tasks', 'sha256'],
      set.splits.map(({ name, type, num_tasks, content_hash }) => [name, type, num_tasks, content_hash.slice(0, 12)]),
    );
    process.stdout.write(`${printable(environment)}@${version}${created ? '' : ': already has these tasks'}\n`);
  });
}

export async function listTaskSets(target: string, options: Printed): Promise<void> {
  const sets = await withClient(async (client) => client.taskSets.list(await environmentName(client, target)));
  await printList(options, sets, [
    ['sha256', ({ content_hash }) => content_hash?.slice(0, 12) ?? null],
    ['state', ({ state }) => state],
    ['versions', ({ versions }) => versions.join(', ')],
    ['splits', ({ splits }) => splits.map(({ name, num_tasks }) => `${name} (${num_tasks})`).join(', ')],
    ['created', ({ created_at }) => created_at],
  ]);
}

/** The files in the order of the command line. Throws `UsageError`. */
async function taskFilesOf(files: string[], { split: splits = [], type = [] }: Pick<PushOptions, 'split' | 'type'>): Promise<TaskFile[]> {
  const [only] = splits;
  // One file with `--split NAME`.
  const isNameOnly = files.length === 1 && splits.length === 1 && !only!.includes('=');
  const named = isNameOnly
    ? [[only!, files[0]!] as [string, string]]
    : [
        ...files.map((file): [string, string] => [splitNameOf(file), file]),
        ...splits.map((text) => pairOf(text, '--split train=file.jsonl')),
      ];
  if (named.length === 0) throw new UsageError('No task file. Usage: palestra tasks push owner/name train.jsonl');
  const types = new Map(type.map((text) => pairOf(text, '--type hard=validation')));
  for (const [split, one] of types) {
    if (!SPLIT_TYPES.includes(one as SplitType))
      throw new UsageError(`--type ${split}=${one}: the type must be train, validation or test.`);
    if (!named.some(([name]) => name === split)) throw new UsageError(`--type ${split}=${one}: no file for this split.`);
  }
  const seen = new Set<string>();
  const taskFiles: TaskFile[] = [];
  for (const [split, file] of named) {
    if (seen.has(split)) throw new UsageError(`Two files for the split ${split}. Rename one with --split NAME=FILE.`);
    seen.add(split);
    const found = await stat(file).catch((error: unknown) => {
      throw new UsageError(`Cannot read ${file}: ${(error as Error).message}`);
    });
    if (!found.isFile()) throw new UsageError(`${file} is not a file.`);
    const ofSplit = types.get(split) as SplitType | undefined;
    const format = formatOf(file);
    taskFiles.push({ split, ...(ofSplit && { type: ofSplit }), format, name: path.basename(file), open: () => createReadStream(file) });
  }
  return taskFiles;
}

/** `train` for `data/train.jsonl` and for the shard `train-00000-of-00001.parquet`. */
const splitNameOf = (file: string): string => path.basename(file, path.extname(file)).replace(/-\d{5}-of-\d{5}$/, '');

function formatOf(file: string): TaskFile['format'] {
  const extension = path.extname(file).toLowerCase();
  if (extension === '.parquet') return 'parquet';
  if (extension === '.jsonl' || extension === '.ndjson') return 'jsonl';
  throw new UsageError(`${file}: unsupported file type. Task files are .jsonl or .parquet.`);
}

function pairOf(text: string, example: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new UsageError(`Invalid value "${text}". Expected ${example}.`);
  return [text.slice(0, at), text.slice(at + 1)];
}
