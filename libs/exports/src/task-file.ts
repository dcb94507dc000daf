import { isObject, type JsonObject, type JsonValue } from '@palestra/protocol';
import { listElements, type ParquetElement, type ParquetSchema, parquetStream, textElement } from './parquet-stream.ts';
import { pythonJson } from './python-json.ts';
import type { ColumnType } from './row-formats.ts';

/** A row group is written at this many rows or characters: memory stays bounded, and readers get large groups. */
const GROUP_ROWS = 1_000;
const GROUP_CHARACTERS = 16_000_000;

/** Streams JSON lines, as Python's `json.dumps` writes them. */
export async function* jsonLinesFile(rows: AsyncIterable<JsonObject>): AsyncGenerator<Uint8Array> {
  for await (const row of rows) yield Buffer.from(`${pythonJson(row)}\n`);
}

/** Streams a Parquet file. The columns are known before the first row, so that no row waits in memory for the last one. */
export function parquetFile(rows: AsyncIterable<JsonObject>, columns: Record<string, ColumnType>): AsyncGenerator<Uint8Array> {
  return parquetStream<JsonObject>(rows, {
    schema: schemaOf(columns),
    columnsOf: (group) =>
      Object.entries(columns).map(([name, type]) => ({ name, data: group.map((row) => valueOf(row[name] ?? null, type)) })),
    // The codec of SkyRL's script.
    codec: 'SNAPPY',
    groupRows: GROUP_ROWS,
    weightOf: charactersOf,
    groupWeight: GROUP_CHARACTERS,
  });
}

/** Why a Parquet file cannot hold a row: its messages are `{role, content}` there. null if it can. */
export function parquetProblem(row: JsonObject): string | null {
  const messages = Object.values(row).flatMap((value) => (Array.isArray(value) ? value : []));
  const other = messages.find(
    (message) => !isObject(message) || Object.keys(message).length !== 2 || typeof message['content'] !== 'string',
  );
  return other === undefined ? null : 'Its prompt has more than text: calls, results or images. Write a file that ends in .jsonl.';
}

function schemaOf(columns: Record<string, ColumnType>): ParquetSchema {
  const elements = Object.entries(columns).flatMap(([name, type]) => elementsOf(name, type));
  return [{ name: 'schema', num_children: Object.keys(columns).length }, ...elements];
}

function elementsOf(name: string, type: ColumnType): ParquetElement[] {
  if (typeof type === 'object') {
    const fields = Object.entries(type);
    const children = fields.flatMap(([field, fieldType]) => elementsOf(field, fieldType));
    return [{ name, repetition_type: 'OPTIONAL', num_children: fields.length }, ...children];
  }
  switch (type) {
    case 'text':
      return [textElement(name)];
    case 'integer':
      return [{ name, type: 'INT64', repetition_type: 'OPTIONAL' }];
    case 'number':
      return [{ name, type: 'DOUBLE', repetition_type: 'OPTIONAL' }];
    case 'boolean':
      return [{ name, type: 'BOOLEAN', repetition_type: 'OPTIONAL' }];
    case 'messages':
      return listElements(name, [
        { name: 'element', repetition_type: 'OPTIONAL', num_children: 2 },
        textElement('role'),
        textElement('content'),
      ]);
  }
}

/** The value as the writer takes it: whole numbers are `bigint`. */
function valueOf(value: JsonValue, type: ColumnType): unknown {
  if (value === null) return null;
  if (type === 'integer') return BigInt(value as number);
  if (typeof type !== 'object' || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(type).map(([field, fieldType]) => [field, valueOf(value[field] ?? null, fieldType)]));
}

function charactersOf(value: JsonValue): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  return Object.values(value).reduce((sum: number, item) => sum + charactersOf(item as JsonValue), 0);
}

/** The four columns after the prompt in a file of tasks for SkyRL. */
export function taskElements(): ParquetElement[] {
  return [
    textElement('env_class'),
    textElement('env_name'),
    textElement('split'),
    { name: 'task_index', type: 'INT64', repetition_type: 'OPTIONAL' },
  ];
}
