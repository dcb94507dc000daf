import { PalestraError } from '@palestra/protocol';
import { z } from 'zod';

/** Where a page ended, as clients carry it: opaque to them, checked when it comes back. */
export function encodeCursor(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** The texts of a cursor with exactly these checks. Throws `invalid_cursor`. */
export function decodeCursor(cursor: string, ...checks: RegExp[]): string[] {
  try {
    const parts = z
      .array(z.string())
      .length(checks.length)
      .parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
    if (parts.every((part, at) => checks[at]!.test(part))) return parts;
  } catch (error) {
    throw new PalestraError('invalid_cursor', { cause: error });
  }
  throw new PalestraError('invalid_cursor');
}

export const INTEGER = /^-?\d{1,19}$/;
export const NUMBER = /^(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?Infinity|NaN)$/i;

/** The keys of a query for a page of a list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(500).default(20),
  offset: z.coerce.number().int().min(0).default(0).describe('Slow far from the start; prefer `cursor`.'),
  cursor: z.string().max(400).optional().describe('`next` of the page before.'),
};
