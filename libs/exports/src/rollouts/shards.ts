/** A row and the cursor after it. */
export interface Positioned<Row, Cursor> {
  row: Row;
  cursor: Cursor;
}

export interface ShardLimits {
  rows: number;
  /** Limit of the size of the written file. */
  bytes: number;
}

/**
 * Splits a stream of rows into files. `cursor` belongs to the last row of the last shard: an export that restarts there after the shard
 * is stored writes every row once. Reads only one row ahead, with which the next shard starts.
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

  /** Number of rows in all shards. */
  get taken(): number {
    return this.#taken;
  }

  async isDone(): Promise<boolean> {
    return (await this.#peek()).done === true;
  }

  /** The rows of the next file, up to one of the limits. `written` returns the bytes of the file so far. */
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

  /** Closes the source of the rows. */
  async close(): Promise<void> {
    await this.#rows.return?.();
  }

  #peek(): Promise<IteratorResult<Positioned<Row, Cursor>>> {
    this.#next ??= this.#rows.next();
    return this.#next;
  }
}

/** `data/train-00002-of-00005.parquet`, the name that dataset readers expect. */
export function shardName(index: number, count: number, extension: string): string {
  const five = (value: number) => String(value).padStart(5, '0');
  return `data/train-${five(index)}-of-${five(count)}.${extension}`;
}
