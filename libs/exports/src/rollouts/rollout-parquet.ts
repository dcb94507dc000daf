import { loadZstd } from '@palestra/kit/zstd';
import { type ColumnPart, listElements, type ParquetSchema, parquetStream } from '../parquet-stream.ts';
import type { ExportedMessage, NarrowRollout } from './exported-rollout.ts';
import { cellOf, type Column, elementsOf, EXPORT_COLUMNS, MESSAGE_COLUMNS } from './narrow-columns.ts';

/** Limits of a row group. Encoding one column of it, or one field of the messages, blocks the event loop. */
const GROUP_ROWS = 2_500;
const GROUP_CHARACTERS = 4_000_000;
const NARROW_CHARACTERS = 400;

export interface RolloutParquetOptions {
  /** With the messages, as a list of structs. */
  messages: boolean;
  /** Default: the columns of exports. */
  columns?: readonly Column[];
  /** Origin of the export, in the footer of every file. */
  lineage?: Record<string, string>;
}

/** One Parquet file of rollouts, compressed with zstd. Reads rows only when the consumer requests more. */
export async function* rolloutParquet<Row extends NarrowRollout & { messages?: ExportedMessage[] }>(
  rows: AsyncIterable<Row>,
  { messages, columns = EXPORT_COLUMNS, lineage = {} }: RolloutParquetOptions,
): AsyncGenerator<Uint8Array> {
  yield* parquetStream(rows, {
    schema: schemaOf(columns, messages),
    columnsOf: (group) => columnsOf(group, columns, messages),
    codec: 'ZSTD',
    compressors: { ZSTD: (await loadZstd()).compress },
    kvMetadata: Object.entries(lineage).map(([key, value]) => ({ key, value })),
    groupRows: GROUP_ROWS,
    weightOf: (row) => NARROW_CHARACTERS + (messages ? charactersOf(row.messages) : 0),
    groupWeight: GROUP_CHARACTERS,
  });
}

function schemaOf(columns: readonly Column[], messages: boolean): ParquetSchema {
  return [
    { name: 'schema', num_children: columns.length + (messages ? 1 : 0) },
    ...columns.flatMap(elementsOf),
    ...(messages ? messagesOf(MESSAGE_COLUMNS) : []),
  ];
}

const messagesOf = (fields: readonly Column[]): ParquetSchema =>
  listElements('messages', [{ name: 'element', repetition_type: 'OPTIONAL', num_children: fields.length }, ...fields.flatMap(elementsOf)]);

const MESSAGE_FIELDS: ParquetSchema[] = MESSAGE_COLUMNS.map((field) => [{ name: 'schema', num_children: 1 }, ...messagesOf([field])]);

function* columnsOf(
  rows: (NarrowRollout & { messages?: ExportedMessage[] })[],
  columns: readonly Column[],
  messages: boolean,
): Generator<ColumnPart> {
  for (const { name, type } of columns) {
    const values = rows.map((row) => cellOf(type, row[name as keyof NarrowRollout]));
    yield { name, data: values, statistics: helpsToSkip(name, type) };
  }
  if (!messages) return;
  const data = rows.map((row) => row.messages ?? []);
  // No statistics: readers cannot skip row groups by bounds of message texts.
  for (const schema of MESSAGE_FIELDS) yield { name: 'messages', data, statistics: false, schema };
}

/** Whether readers filter by ranges of the column. Bounds of other columns cost more than they save. */
const helpsToSkip = (name: string, type: Column['type']): boolean =>
  type !== 'json' && type !== 'strings' && (type !== 'string' || ['run', 'run_id', 'environment', 'rollout_id'].includes(name));

/** Approximate size of a rollout's messages in memory, in characters. */
export function charactersOf(messages: readonly ExportedMessage[] = []): number {
  let characters = 0;
  for (const { content, summary, metadata } of messages) {
    characters += 100 + (content?.length ?? 0) + (summary?.length ?? 0) + (metadata?.length ?? 0);
  }
  return characters;
}
