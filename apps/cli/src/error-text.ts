import { ConnectionError, PalestraApiError } from '@palestra/client';
import { printable, printableLines } from './output.ts';

/** The message of an error, followed by the last log lines of a program that ended. */
export function describeError(error: unknown): string {
  if (error instanceof PalestraApiError)
    return printable(reasonsOf(error.detail)) + (error.status === 401 ? ' Is OPENREWARD_API_KEY set?' : '');
  if (error instanceof ConnectionError) return `${printable(error.message)}. Is the server running? OPENREWARD_URL sets its address.`;
  return printableLines(error instanceof Error ? error.message : String(error));
}

/** The text of a detail: the messages of a list of reasons (`[{"loc": ["query", "q"], "msg": ...}]`), else the detail itself. */
function reasonsOf(detail: string): string {
  try {
    const items = JSON.parse(detail) as { loc?: unknown; msg?: unknown }[];
    const reasons = items.flatMap(({ loc, msg }) => (typeof msg === 'string' ? [nameOf(loc) + msg] : []));
    return reasons.length > 0 ? reasons.join(' ') : detail;
  } catch {
    return detail;
  }
}

/** The name of the invalid field, such as `limit: `. Empty for positions in a query, whose messages quote the query. */
function nameOf(loc: unknown): string {
  if (!Array.isArray(loc) || loc.some((part) => typeof part === 'number')) return '';
  const name = loc.slice(1).join('.');
  return name === '' ? '' : `${name}: `;
}
