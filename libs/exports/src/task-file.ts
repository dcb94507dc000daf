import type { TaskFileFormat } from '@palestra/protocol';
import { listElements, type ColumnData, type ParquetElement, type ParquetSchema, parquetStream, textElement } from './parquet-stream.ts';
import { pythonJson } from './python-json.ts';
import type { TaskRow } from './task-rows.ts';

/** `text`: the prompt is JSON text, as SkyRL's script writes it; `messages`: a list of `{role, content}`. */
export type PromptFormat = 'text' | 'messages';

/** The column by which trainers select the environment class. */
export const ENV_CLASS = 'openreward';

/** A row group is written at this many rows or characters of prompts: memory stays bounded, and readers get large groups. */
const GROUP_ROWS = 1_000;
const GROUP_CHARACTERS = 16_000_000;

/** Streams the file. Columns: prompt, env_class, env_name, split, task_index. */
export function taskFile(rows: AsyncIterable<TaskRow>, format: TaskFileFormat, promptFormat: PromptFormat): AsyncGenerator<Uint8Array> {
  return format === 'parquet' ? parquetFile(rows, promptFormat) : jsonLines(rows, promptFormat);
}

async function* jsonLines(rows: AsyncIterable<TaskRow>, promptFormat: PromptFormat): AsyncGenerator<Uint8Array> {
  for await (const { messages, env_name, split, task_index } of rows) {
    const prompt = promptFormat === 'text' ? pythonJson(messages) : messages;
    yield Buffer.from(`${pythonJson({ prompt, env_class: ENV_CLASS, env_name, split, task_index })}\n`);
  }
}

function schemaOf(promptFormat: PromptFormat): ParquetSchema {
  const message: ParquetElement = { name: 'element', repetition_type: 'OPTIONAL', num_children: 2 };
  const prompt =
    promptFormat === 'text' ? [textElement('prompt')] : listElements('prompt', [message, textElement('role'), textElement('content')]);
  return [{ name: 'schema', num_children: 5 }, ...prompt, ...taskElements()];
}

/** The four columns after the prompt in every file of tasks. */
export function taskElements(): ParquetElement[] {
  return [
    textElement('env_class'),
    textElement('env_name'),
    textElement('split'),
    { name: 'task_index', type: 'INT64', repetition_type: 'OPTIONAL' },
  ];
}

function parquetFile(rows: AsyncIterable<TaskRow>, promptFormat: PromptFormat): AsyncGenerator<Uint8Array> {
  return parquetStream(rows, {
    schema: schemaOf(promptFormat),
    columnsOf: (group) => columnsOf(group, promptFormat),
    // The codec of SkyRL's script.
    codec: 'SNAPPY',
    groupRows: GROUP_ROWS,
    weightOf: ({ messages }) => messages.reduce((characters, { content }) => characters + content.length, 0),
    groupWeight: GROUP_CHARACTERS,
  });
}

function columnsOf(rows: TaskRow[], promptFormat: PromptFormat): ColumnData {
  const prompts = rows.map(({ messages }) => (promptFormat === 'text' ? pythonJson(messages) : messages));
  return [
    { name: 'prompt', data: prompts },
    { name: 'env_class', data: rows.map(() => ENV_CLASS) },
    { name: 'env_name', data: rows.map((row) => row.env_name) },
    { name: 'split', data: rows.map((row) => row.split) },
    { name: 'task_index', data: rows.map((row) => BigInt(row.task_index)) },
  ];
}
