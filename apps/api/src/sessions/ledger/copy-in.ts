import type pg from 'pg';
import { withoutNul } from './postgres-text.ts';

/** Neither occurs in JSON, so that nearly no value has to be quoted, and none looked through twice. */
const [QUOTE, DELIMITER, NULL] = ['\u0001', '\u0002', '\u0003'];
// eslint-disable-next-line no-control-regex
const SPECIAL = /[\0-\u001F]/;

/** Options of a `COPY ... FROM STDIN` whose lines are `copyLine`s. */
export const COPY_OPTIONS = `(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01', NULL E'\\x03')`;

/** One value of a line; text as it is. */
export function copyValue(value: string | number | boolean | null): string {
  if (value === null) return NULL;
  if (typeof value !== 'string') return String(value);
  if (value !== '' && !SPECIAL.test(value)) return value;
  return `${QUOTE}${withoutNul(value).replaceAll(QUOTE, QUOTE + QUOTE)}${QUOTE}`;
}

export const copyLine = (values: readonly string[]): string => `${values.join(DELIMITER)}\n`;

/**
 * Runs statements of which one is a `COPY ... FROM STDIN`, with its data, in one round trip: the data goes out with the statements. They are one
 * transaction.
 */
export async function copyIn(pool: pg.Pool, sql: string, data: Buffer): Promise<void> {
  // A pool answers a promise whatever it runs; its types know it of queries only.
  await (pool.query(new CopyIn(sql, data)) as unknown as Promise<void>);
}

/** The parts of pg's connection that COPY needs. */
interface Connection {
  stream: { cork(): void; uncork(): void };
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

class CopyIn implements pg.Submittable {
  /** Set by the client that runs it. */
  callback: ((error: Error | null) => void) | null = null;
  #failed = false;

  constructor(
    readonly sql: string,
    readonly data: Buffer,
  ) {}

  submit(connection: unknown): void {
    const { stream } = connection as Connection;
    stream.cork();
    (connection as Connection).query(this.sql);
    // Of a statement that fails before it reads them, PostgreSQL drops them unread, as its protocol says.
    (connection as Connection).sendCopyFromChunk(this.data);
    (connection as Connection).endCopyFrom();
    stream.uncork();
  }

  handleError(error: Error): void {
    if (this.#failed) return;
    this.#failed = true;
    this.callback?.(error);
  }
  handleReadyForQuery(): void {
    if (!this.#failed) this.callback?.(null);
  }
  handleCopyInResponse(): void {}
  handleCommandComplete(): void {}
  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}
