import { ConnectionError, PalestraApiError } from '@palestra/client';
import { printable, printableLines } from './output.ts';

/** One line for whatever went wrong, and below it the last words of a program that ended. */
export function describeError(error: unknown): string {
  if (error instanceof PalestraApiError)
    return printable(reasonsOf(error.detail)) + (error.status === 401 ? ' Is OPENREWARD_API_KEY set?' : '');
  if (error instanceof ConnectionError) return `${printable(error.message)}. Is the server running? OPENREWARD_URL says where it is.`;
  return printableLines(error instanceof Error ? error.message : String(error));
}

/** Of what was wrong with a request the server makes a list, `[{"loc": ["query", "q"], "msg": ...}]`; of anything else words. */
function reasonsOf(detail: string): string {
  try {
    const items = JSON.parse(detail) as { loc?: unknown; msg?: unknown }[];
    const reasons = items.flatMap(({ loc, msg }) => (typeof msg === 'string' ? [nameOf(loc) + msg] : []));
    return reasons.length > 0 ? reasons.join(' ') : detail;
  } catch {
    return detail;
  }
}

/** What a reason is about, where its words do not say it: `limit: `. Places in a query are the query's own words. */
function nameOf(loc: unknown): string {
  if (!Array.isArray(loc) || loc.some((part) => typeof part === 'number')) return '';
  const name = loc.slice(1).join('.');
  return name === '' ? '' : `${name}: `;
}
