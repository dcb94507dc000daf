import pg from 'pg';

/** Of the file format that `COPY ... (FORMAT binary)` writes (PostgreSQL's manual, "Binary Format" of COPY): eleven bytes, flags, length of an extension. */
const SIGNATURE = Buffer.from('PGCOPY\n\u00FF\r\n\0', 'latin1');
const EXTENSION = SIGNATURE.length + 4;
const END = -1;

/** A value as its type's `send` function writes it; null = NULL. */
export type CopiedRow = readonly (Buffer | null)[];

/**
 * Rows of `select`, as bytes: node-postgres takes every other answer as text, of which a byte of a `bytea` is two letters. COPY has no parameters, and is planned each
 * time: for few rows of many bytes. Numbers are written into the text by `arrayOf`. A pipelined connection takes it.
 */
export function copyOut(client: Pick<pg.ClientBase, 'query'>, select: string): Promise<CopiedRow[]> {
  return new Promise((resolve, reject) => {
    const query = new CopyOut(`COPY (${select}) TO STDOUT (FORMAT binary)`, (error) => {
      if (error) return reject(error);
      try {
        resolve(rowsOf(Buffer.concat(query.chunks)));
      } catch (malformed) {
        reject(malformed);
      }
    });
    client.query(query);
  });
}

/** A list of numbers as a literal of that array type. */
export function arrayOf(type: 'smallint' | 'int' | 'bigint' | 'float8', values: readonly number[]): string {
  if (!values.every(Number.isFinite)) throw new RangeError('an array of numbers has something else in it');
  return `'{${values.join(',')}}'::${type}[]`;
}

/** The method of pg's own class that its types leave out. */
interface CopyQuery extends pg.Submittable {
  handleCopyData(message: { chunk: Buffer }): void;
}
const Query = pg.Query as unknown as new (
  text: string,
  values: undefined,
  callback: (error: Error | null | undefined) => void,
) => CopyQuery;

class CopyOut extends Query {
  readonly chunks: Buffer[] = [];

  constructor(text: string, callback: (error: Error | null | undefined) => void) {
    super(text, undefined, callback);
  }

  /** Bytes of the message are overwritten by what comes after it. */
  override handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.chunks.push(Buffer.from(chunk));
  }
}

function rowsOf(bytes: Buffer): CopiedRow[] {
  if (bytes.compare(SIGNATURE, 0, SIGNATURE.length, 0, SIGNATURE.length) !== 0)
    throw new Error('PostgreSQL answered COPY in an unknown format');
  const rows: CopiedRow[] = [];
  let at = EXTENSION + 4 + bytes.readInt32BE(EXTENSION);
  for (;;) {
    const columns = bytes.readInt16BE(at);
    at += 2;
    if (columns === END) return rows;
    const row: (Buffer | null)[] = [];
    for (let column = 0; column < columns; column += 1) {
      const length = bytes.readInt32BE(at);
      at += 4;
      row.push(length < 0 ? null : bytes.subarray(at, at + length));
      at += Math.max(length, 0);
    }
    rows.push(row);
  }
}
