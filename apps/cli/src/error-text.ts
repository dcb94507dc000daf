import { PalestraApiError } from '@palestra/client';
import { printable, printableLines } from './output.ts';

/** One line for whatever went wrong, and below it the last words of a program that ended. */
export function describeError(error: unknown): string {
  if (error instanceof PalestraApiError)
    return printable(reasonsOf(error.detail)) + (error.status === 401 ? ' Is OPENREWARD_API_KEY set?' : '');
  return printableLines(error instanceof Error ? error.message : String(error));
}

/** Of what was wrong with a request the server makes a list, `[{"loc": ["query", "q"], "msg": ...}]`; of anything else words. */
function reasonsOf(detail: string): string {
  try {
    const items = JSON.parse(detail) as { msg?: unknown }[];
    const reasons = items.map(({ msg }) => msg).filter((msg) => typeof msg === 'string');
    return reasons.length > 0 ? reasons.join(' ') : detail;
  } catch {
    return detail;
  }
}
