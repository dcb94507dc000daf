import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import {
  type AsyncBuffer,
  asyncBufferFromFile,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type SchemaTree,
  snappyUncompress,
} from 'hyparquet';
import { LosslessNumber } from 'lossless-json';
import { loadZstd } from '@palestra/kit/zstd';
import type { JsonValue } from '@palestra/protocol';
import { decimalOf, parsers, withStoredDecimals } from './parquet-values.ts';
import { boundedJson, taskFileError, type TaskRecord } from './task-record.ts';

/** Rows per read, so that memory is bounded for row groups of any size. */
const PAGE_ROWS = 5_000;

/** Limits in bytes: a footer, a page after decompression, and a column of a row group, which is read as a whole. */
const MAX_FOOTER = 16 * 1024 * 1024;
const MAX_PAGE = 64 * 1024 * 1024;
const MAX_COLUMN = 128 * 1024 * 1024;

/** Page headers are not trusted: a codec allocates at most the stated size and at most `MAX_PAGE`. */
const bounded = (decompress: (bytes: Uint8Array, length: number) => Uint8Array) => (bytes: Uint8Array, length: number) => {
  if (!(length <= MAX_PAGE)) throw new Error(`a page of ${length} bytes; at most ${MAX_PAGE / 1024 / 1024} MiB are read`);
  return decompress(bytes, length);
};
const zlibOptions = (length: number) => ({ maxOutputLength: Math.max(length, 1) });
const loadCodecs = async (): Promise<Compressors> => ({
  SNAPPY: bounded((bytes, length) => {
    const page = new Uint8Array(length);
    snappyUncompress(bytes, page);
    return page;
  }),
  GZIP: bounded((bytes, length) => gunzipSync(bytes, zlibOptions(length))),
  BROTLI: bounded((bytes, length) => brotliDecompressSync(bytes, zlibOptions(length))),
  ZSTD: bounded((await loadZstd()).decompress),
});

/** Refuses reads that are larger than a column may be. The footer has the bounds of columns. */
async function openFile(path: string): Promise<AsyncBuffer> {
  const file = await asyncBufferFromFile(path);
  return {
    byteLength: file.byteLength,
    slice(start, end = file.byteLength) {
      if (end - start > MAX_COLUMN) {
        const problem = `a column of ${end - start} bytes; at most ${MAX_COLUMN / 1024 / 1024} MiB are read. Write smaller row groups`;
        throw new Error(problem);
      }
      return file.slice(start, end);
    },
  };
}

/** The last eight bytes of a file are the length of its footer and a magic number. */
async function assertSmallFooter(file: AsyncBuffer): Promise<void> {
  if (file.byteLength < 12) throw new Error('it is too short');
  const length = new DataView(await file.slice(file.byteLength - 8, file.byteLength)).getUint32(0, true);
  if (length > MAX_FOOTER) throw new Error(`its footer has ${length} bytes; at most ${MAX_FOOTER / 1024 / 1024} MiB are read`);
}

/** Rows as JSON: 64-bit integers and decimals keep their digits, floating-point columns keep `1.0`, times are ISO texts. */
export async function* parquetRecords(path: string, name: string): AsyncGenerator<TaskRecord> {
  const file = await openFile(path);
  const { metadata, columns, stored } = await readFooter(file).catch((error: unknown) => {
    throw taskFileError(name, null, `not a Parquet file that can be read (${(error as Error).message})`, error);
  });
  const compressors = await loadCodecs();
  let row = 0;
  for (const { start, stop } of pagesOf(metadata)) {
    for (const record of await read({ file, metadata: stored, compressors }, start, stop, name)) {
      row += 1;
      const where = `row ${row}`;
      yield { where, record: recordOf(record, columns, name, where) };
    }
  }
}

async function readFooter(file: AsyncBuffer) {
  await assertSmallFooter(file);
  const metadata = await parquetMetadataAsync(file, { geoparquet: false });
  return { metadata, columns: parquetSchema(metadata).children, stored: withStoredDecimals(metadata) };
}

/** Pages within row groups, so that each value is decoded once. */
function* pagesOf(metadata: FileMetaData): Generator<{ start: number; stop: number }> {
  let start = 0;
  for (const group of metadata.row_groups) {
    const end = start + Number(group.num_rows);
    for (; start < end; start += PAGE_ROWS) yield { start, stop: Math.min(start + PAGE_ROWS, end) };
    start = end;
  }
}

interface OpenParquet {
  file: AsyncBuffer;
  metadata: FileMetaData;
  compressors: Compressors;
}

async function read(source: OpenParquet, rowStart: number, rowEnd: number, name: string) {
  try {
    return await parquetReadObjects({ ...source, rowStart, rowEnd, parsers, geoparquet: false });
  } catch (error) {
    throw taskFileError(name, `rows ${rowStart + 1} to ${rowEnd}`, `unreadable (${(error as Error).message})`, error);
  }
}

function recordOf(record: Record<string, unknown>, columns: SchemaTree[], name: string, where: string): JsonValue {
  try {
    const entries = columns.map((column): [string, JsonValue] => [column.element.name, jsonOf(record[column.element.name], column)]);
    const row = Object.fromEntries(entries);
    // A column can have specifications of different shapes only as JSON text.
    if (typeof row['task_spec'] === 'string' && row['task_spec'].startsWith('{')) row['task_spec'] = boundedJson(row['task_spec']);
    return row;
  } catch (error) {
    throw taskFileError(name, where, (error as Error).message, error);
  }
}

function jsonOf(value: unknown, column: SchemaTree | undefined): JsonValue {
  if (value === null || value === undefined) return null;
  const decimal = decimalOf(value, column?.element);
  if (decimal !== null) return decimal;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : new LosslessNumber(String(value));
  if (typeof value === 'number') return floating(value, column);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) {
    if (value instanceof Uint8Array) throw new Error(`the column ${column?.element.name ?? ''} has bytes; a task must be JSON`);
    return Array.from(value as unknown as Iterable<unknown>, (item) => jsonOf(item, elementOf(column)));
  }
  if (Array.isArray(value)) return value.map((item) => jsonOf(item, elementOf(column)));
  if (typeof value !== 'object' || value instanceof LosslessNumber) return value;
  const children = new Map(column?.children.map((child) => [child.element.name, child]));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonOf(item, children.get(key) ?? valueOf(column))]));
}

const isFloating = (column: SchemaTree | undefined) => column?.element.type === 'DOUBLE' || column?.element.type === 'FLOAT';

function floating(value: number, column: SchemaTree | undefined): JsonValue {
  if (!Number.isFinite(value)) return null;
  return isFloating(column) && Number.isInteger(value) && Math.abs(value) < 1e16 ? new LosslessNumber(`${value}.0`) : value;
}

/** Elements of a list in three levels (`list`, `element`) or in one. */
function elementOf(column: SchemaTree | undefined): SchemaTree | undefined {
  const [only, ...others] = column?.children ?? [];
  if (only === undefined) return column;
  return others.length === 0 && only.element.repetition_type === 'REPEATED' && only.children.length === 1 ? only.children[0] : column;
}

/** Values of a map in three levels (`key_value`, then `key` and `value`). */
const valueOf = (column: SchemaTree | undefined): SchemaTree | undefined =>
  column?.children[0]?.children.find(({ element }) => element.name === 'value');
