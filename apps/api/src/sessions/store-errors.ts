import { BatchQueueFullError } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';

/** SQLSTATE classes of a server that cannot serve now: connection, resources, operator intervention, system, internal. */
const UNAVAILABLE = /^(08|53|57|58|XX)/;

/** A failed statement as clients get it: 503 when the database is away (nothing was run, nothing stored), else unchanged. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof BatchQueueFullError) return new PalestraError('database_unavailable', { cause: error });
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : '';
  const away = UNAVAILABLE.test(code) || /^E[A-Z]+$/.test(code) || /connection|timeout exceeded/i.test(message);
  return away ? new PalestraError('database_unavailable', { cause: error }) : error;
}

/** NUL is legal in JSON strings and illegal in PostgreSQL text. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text);
