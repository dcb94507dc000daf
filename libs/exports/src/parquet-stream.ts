import { TimeSlice } from '@palestra/kit';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';

type WriterOptions = ConstructorParameters<typeof ParquetWriter>[0];
export type ParquetSchema = WriterOptions['schema'];
export type ParquetElement = ParquetSchema[number];
export type ColumnData = Parameters<ParquetWriter['write']>[0]['columnData'];

/** A column. `schema`: the path to one leaf of a nested column, which is then written leaf by leaf. */
export type ColumnPart = ColumnData[number] & { schema?: ParquetSchema };

export interface ParquetStreamOptions<Row> {
  schema: ParquetSchema;
  /** In the order of the schema. */
  columnsOf(rows: Row[]): Iterable<ColumnPart>;
  codec: NonNullable<WriterOptions['codec']>;
  compressors?: WriterOptions['compressors'];
  kvMetadata?: WriterOptions['kvMetadata'];
  /** A row group is written at this many rows, or when the weights of its rows reach `groupWeight`, which bounds the memory. */
  groupRows: number;
  weightOf(row: Row): number;
  groupWeight: number;
}

/** An optional column of UTF-8 text. */
export const textElement = (name: string): ParquetElement => ({
  name,
  type: 'BYTE_ARRAY',
  repetition_type: 'OPTIONAL',
  converted_type: 'UTF8',
  logical_type: { type: 'STRING' },
});

/** An optional list column. `element` describes its elements; its first entry is called `element`. */
export function listElements(name: string, element: ParquetElement[]): ParquetSchema {
  return [
    { name, repetition_type: 'OPTIONAL', converted_type: 'LIST', logical_type: { type: 'LIST' }, num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    ...element,
  ];
}

/** Streams a Parquet file by row groups. Reads rows only on demand. A file without rows is valid. */
export async function* parquetStream<Row>(rows: AsyncIterable<Row>, options: ParquetStreamOptions<Row>): AsyncGenerator<Uint8Array> {
  const { schema, codec, compressors, kvMetadata } = options;
  const bytes = new ByteWriter();
  const parquet = new ParquetWriter({ writer: bytes, schema, codec, compressors, kvMetadata, createdBy: 'palestra' });
  let group: Row[] = [];
  let weight = 0;
  const slice = new TimeSlice();
  const writeGroup = async (): Promise<Uint8Array> => {
    const before = { groups: parquet.row_groups.length, rows: parquet.num_rows };
    for (const { schema: path = schema, ...column } of options.columnsOf(group)) {
      parquet.schema = path;
      await parquet.write({ columnData: [column], rowGroupSize: group.length });
      if (slice.isOver) await slice.renew();
    }
    parquet.schema = schema;
    // The writer took each column for a row group.
    const parts = parquet.row_groups.splice(before.groups);
    parquet.row_groups.push({
      columns: parts.flatMap(({ columns }) => columns),
      num_rows: BigInt(group.length),
      total_byte_size: parts.reduce((sum, part) => sum + part.total_byte_size, 0n),
      total_compressed_size: parts.reduce((sum, part) => sum + (part.total_compressed_size ?? 0n), 0n),
    });
    parquet.num_rows = before.rows + BigInt(group.length);
    group = [];
    weight = 0;
    return take(bytes);
  };
  for await (const row of rows) {
    group.push(row);
    weight += options.weightOf(row);
    if (group.length >= options.groupRows || weight >= options.groupWeight) yield await writeGroup();
  }
  if (group.length > 0) yield await writeGroup();
  await parquet.finish();
  yield take(bytes);
}

/** The bytes since the last call. `offset` continues, because Parquet's footer uses it. */
function take(writer: ByteWriter): Uint8Array {
  const written = writer.getBytes().slice();
  writer.index = 0;
  return written;
}
