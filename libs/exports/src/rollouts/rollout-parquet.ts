import { loadZstd } from '@palestra/kit/zstd';
import { type ColumnData, listElements, type ParquetSchema, parquetStream } from '../parquet-stream.ts';
import type { ExportedMessage, NarrowRollout } from './exported-rollout.ts';
import { cellOf, type Column, elementsOf, EXPORT_COLUMNS, MESSAGE_COLUMNS } from './narrow-columns.ts';

/** Limits of a row group. Encoding one blocks the event loop for some tenths of a second. */
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
  const message = { name: 'element', repetition_type: 'OPTIONAL' as const, num_children: MESSAGE_COLUMNS.length };
  return [
    { name: 'schema', num_children: columns.length + (messages ? 1 : 0) },
    ...columns.flatMap(elementsOf),
    ...(messages ? listElements('messages', [message, ...MESSAGE_COLUMNS.flatMap(elementsOf)]) : []),
  ];
}

function* columnsOf(
  rows: (NarrowRollout & { messages?: ExportedMessage[] })[],
  columns: readonly Column[],
  messages: boolean,
): Generator<ColumnData[number]> {
  for (const { name, type } of columns) {
    const values = rows.map((row) => cellOf(type, row[name as keyof NarrowRollout]));
    yield { name, data: values, statistics: helpsToSkip(name, type) };
  }
  // No statistics: readers cannot skip row groups by bounds of message texts.
  if (messages) yield { name: 'messages', data: rows.map((row) => row.messages ?? []), statistics: false };
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
