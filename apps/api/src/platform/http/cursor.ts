import { PalestraError } from '@palestra/protocol';
import { z } from 'zod';

/** The position after a page, opaque to clients. `decodeCursor` checks it. */
export function encodeCursor(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Whether PostgreSQL accepts a text as a value of the compared type. */
type Check = (text: string) => boolean;

/** The parts of a cursor, one for each check. Throws `invalid_cursor`. */
export function decodeCursor(cursor: string, ...checks: Check[]): string[] {
  try {
    const parts = z
      .array(z.string())
      .length(checks.length)
      .parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
    if (parts.every((part, at) => checks[at]!(part))) return parts;
  } catch (error) {
    throw new PalestraError('invalid_cursor', { cause: error });
  }
  throw new PalestraError('invalid_cursor');
}

const integer =
  (bits: bigint): Check =>
  (text) =>
    /^-?\d{1,19}$/.test(text) && BigInt(text) < 2n ** (bits - 1n) && BigInt(text) >= -(2n ** (bits - 1n));
/** `bigint`, `int` and `smallint`. */
export const INT64 = integer(64n);
export const INT32 = integer(32n);
export const INT16 = integer(16n);
const DECIMAL = /^-?(\d+(?:\.\d+)?)(?:e[+-]?\d+)?$/i;
/** `float8`. PostgreSQL refuses numbers that overflow or underflow. */
export const FLOAT64: Check = (text) => {
  const digits = DECIMAL.exec(text)?.[1];
  if (digits === undefined) return /^(?:-?Infinity|NaN)$/.test(text);
  return Number.isFinite(Number(text)) && (Number(text) !== 0 || !/[1-9]/.test(digits));
};
/** `timestamptz`, as ISO 8601 or as PostgreSQL prints it. */
export const TIME: Check = (text) =>
  /^\d{4}-\d{2}-\d{2}[T ][\d:.]{8,15}(?:Z|[+-]\d{2}(?::?\d{2})?)$/.test(text) &&
  !Number.isNaN(Date.parse(text.replace(/([+-]\d{2})$/, '$1:00')));
/** Accepts exactly this text. */
export const exactly =
  (wanted: string): Check =>
  (text) =>
    text === wanted;
