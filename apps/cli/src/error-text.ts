import { ConnectionError, PalestraApiError } from '@palestra/client';
import { CommanderError } from 'commander';
import { DeployError } from './commands/hosting/deploy-error.ts';
import { EXIT, InterruptedError } from './exit-codes.ts';
import { printable, printableLines } from './printable.ts';
import { UsageError } from './server-settings.ts';

/** Statuses of a service that is not available now, after the retries of the client. */
const UNAVAILABLE = new Set([502, 503, 504]);

/** The message of an error, followed by the last log lines of a program that ended. */
export function describeError(error: unknown): string {
  if (error instanceof PalestraApiError)
    return printable(reasonsOf(error.detail)) + (error.status === 401 ? ' Is PALESTRA_API_KEY (or OPENREWARD_API_KEY) set?' : '');
  if (error instanceof ConnectionError)
    return `${printable(error.message)}. Is the server running? PALESTRA_URL (or OPENREWARD_URL) sets its address.`;
  const text = error instanceof Error ? error.message : String(error);
  return printableLines(error instanceof CommanderError ? text.replace(/^error: /, '') : text);
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof InterruptedError) return error.exitCode;
  if (error instanceof UsageError || error instanceof CommanderError) return EXIT.usage;
  if (error instanceof ConnectionError) return EXIT.unreachable;
  if (error instanceof PalestraApiError) {
    if (UNAVAILABLE.has(error.status)) return EXIT.unreachable;
    if (error.status === 401 || error.status === 403) return EXIT.unauthorised;
  }
  return EXIT.failed;
}

/**
 * An error for programs. `code` is that of the API (docs/errors.md) or of a failed deploy, else `usage`, `interrupted`, `unreachable` or `failed`. `statusCode` is
 * null if the server did not refuse the request.
 */
export interface ErrorView {
  code: string;
  message: string;
  statusCode: number | null;
}

export function errorView(error: unknown): ErrorView {
  const status = error instanceof PalestraApiError ? error.status : null;
  const code =
    (error instanceof PalestraApiError || error instanceof DeployError ? error.code : null) || CODES[exitCodeOf(error)] || 'interrupted';
  return { code, message: describeError(error), statusCode: status };
}

const CODES: Record<number, string> = {
  [EXIT.failed]: 'failed',
  [EXIT.usage]: 'usage',
  [EXIT.unreachable]: 'unreachable',
  [EXIT.unauthorised]: 'unauthorized',
};

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
