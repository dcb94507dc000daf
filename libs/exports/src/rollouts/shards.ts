/** A row, and where to go on after it. */
export interface Positioned<Row, Cursor> {
  row: Row;
  cursor: Cursor;
}

export interface ShardLimits {
  rows: number;
  /** Of the file as it is written. */
  bytes: number;
}

/**
 * Rows of one stream, cut into files. `cursor` is that of the last row that a shard took: once the shard is stored, an export that
 * starts again there writes every row once. Nothing is read ahead but one row, which the next shard starts with.
 */
export class ShardedRows<Row, Cursor> {
  readonly #rows: AsyncIterator<Positioned<Row, Cursor>>;
  #next: Promise<IteratorResult<Positioned<Row, Cursor>>> | null = null;
  #cursor: Cursor | null;
  #taken = 0;

  constructor(rows: AsyncIterable<Positioned<Row, Cursor>>, start: Cursor | null) {
    this.#rows = rows[Symbol.asyncIterator]();
    this.#cursor = start;
  }

  get cursor(): Cursor | null {
    return this.#cursor;
  }

  /** Rows that all shards together took. */
  get taken(): number {
    return this.#taken;
  }

  async isDone(): Promise<boolean> {
    return (await this.#peek()).done === true;
  }

  /** The rows of the next file, until one of the limits is reached; `written` tells the bytes of the file so far. */
  async *shard(limits: ShardLimits, written: () => number): AsyncGenerator<Row> {
    for (let rows = 0; rows < limits.rows && (rows === 0 || written() < limits.bytes); rows += 1) {
      const next = await this.#peek();
      if (next.done) return;
      this.#next = null;
      this.#cursor = next.value.cursor;
      this.#taken += 1;
      yield next.value.row;
    }
  }

  /** Ends the stream that the rows come from. */
  async close(): Promise<void> {
    await this.#rows.return?.();
  }

  #peek(): Promise<IteratorResult<Positioned<Row, Cursor>>> {
    this.#next ??= this.#rows.next();
    return this.#next;
  }
}

/** `data/train-00002-of-00005.parquet`: what readers of datasets expect. */
export function shardName(index: number, count: number, extension: string): string {
  const five = (value: number) => String(value).padStart(5, '0');
  return `data/train-${five(index)}-of-${five(count)}.${extension}`;
}
