import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { pythonJson } from './python-json.ts';
import type { TaskRow } from './task-rows.ts';

export type TaskFileFormat = 'parquet' | 'jsonl';
/** `text`: the prompt is the JSON text that SkyRL's own script writes; `messages`: a list of `{role, content}`. */
export type PromptFormat = 'text' | 'messages';

/** What trainers select the environment class by. */
const ENV_CLASS = 'openreward';

/** A row group goes out at this many rows or characters of prompt: memory stays bounded, readers still get large groups. */
const GROUP_ROWS = 1_000;
const GROUP_CHARACTERS = 16_000_000;

/** The file, piece by piece. Columns: prompt, env_class, env_name, split, task_index. */
export function taskFile(rows: AsyncIterable<TaskRow>, format: TaskFileFormat, promptFormat: PromptFormat): AsyncGenerator<Uint8Array> {
  return format === 'parquet' ? parquetFile(rows, promptFormat) : jsonLines(rows, promptFormat);
}

async function* jsonLines(rows: AsyncIterable<TaskRow>, promptFormat: PromptFormat): AsyncGenerator<Uint8Array> {
  for await (const { messages, env_name, split, task_index } of rows) {
    const prompt = promptFormat === 'text' ? pythonJson(messages) : messages;
    yield Buffer.from(`${pythonJson({ prompt, env_class: ENV_CLASS, env_name, split, task_index })}\n`);
  }
}

type Schema = ConstructorParameters<typeof ParquetWriter>[0]['schema'];
type Element = Schema[number];

const text = (name: string): Element => ({
  name,
  type: 'BYTE_ARRAY',
  repetition_type: 'OPTIONAL',
  converted_type: 'UTF8',
  logical_type: { type: 'STRING' },
});

function schemaOf(promptFormat: PromptFormat): Schema {
  const prompt: Schema =
    promptFormat === 'text'
      ? [text('prompt')]
      : [
          { name: 'prompt', repetition_type: 'OPTIONAL', converted_type: 'LIST', logical_type: { type: 'LIST' }, num_children: 1 },
          { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
          { name: 'element', repetition_type: 'OPTIONAL', num_children: 2 },
          text('role'),
          text('content'),
        ];
  const taskIndex: Element = { name: 'task_index', type: 'INT64', repetition_type: 'OPTIONAL' };
  return [{ name: 'schema', num_children: 5 }, ...prompt, text('env_class'), text('env_name'), text('split'), taskIndex];
}

async function* parquetFile(rows: AsyncIterable<TaskRow>, promptFormat: PromptFormat): AsyncGenerator<Uint8Array> {
  const bytes = new ByteWriter();
  const parquet = new ParquetWriter({ writer: bytes, schema: schemaOf(promptFormat), codec: 'SNAPPY', createdBy: 'palestra' });
  let group: TaskRow[] = [];
  let characters = 0;
  const writeGroup = async (): Promise<Uint8Array> => {
    await parquet.write({ columnData: columnsOf(group, promptFormat), rowGroupSize: group.length });
    group = [];
    characters = 0;
    return take(bytes);
  };
  for await (const row of rows) {
    group.push(row);
    for (const { content } of row.messages) characters += content.length;
    if (group.length >= GROUP_ROWS || characters >= GROUP_CHARACTERS) yield await writeGroup();
  }
  if (group.length > 0) yield await writeGroup();
  await parquet.finish();
  yield take(bytes);
}

function columnsOf(rows: TaskRow[], promptFormat: PromptFormat): Parameters<ParquetWriter['write']>[0]['columnData'] {
  const prompts = rows.map(({ messages }) => (promptFormat === 'text' ? pythonJson(messages) : messages));
  return [
    { name: 'prompt', data: prompts },
    { name: 'env_class', data: rows.map(() => ENV_CLASS) },
    { name: 'env_name', data: rows.map((row) => row.env_name) },
    { name: 'split', data: rows.map((row) => row.split) },
    { name: 'task_index', data: rows.map((row) => BigInt(row.task_index)) },
  ];
}

/** What was written since the last call; `offset`, which Parquet's footer counts by, goes on. */
function take(writer: ByteWriter): Uint8Array {
  const written = writer.getBytes().slice();
  writer.index = 0;
  return written;
}
