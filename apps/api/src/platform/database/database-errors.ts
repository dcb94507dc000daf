/** SQLSTATE classes of an unavailable server: connection, resources, operator intervention, system, internal. */
const STATES = /^(08|53|57|58|XX)/;
const SOCKET = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);
const PRISMA = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024']);
/** Connection errors of node-postgres and of Prisma's adapter have no code. */
const MESSAGES =
  /connection (terminated|ended|closed|error)|after calling end on the pool|not queryable|timeout exceeded when trying to connect|can't reach database|server closed the connection|DatabaseNotReachable|ConnectionClosed|SocketTimeout|TooManyConnections/i;

/** A SQLSTATE, not the code of a socket (EPIPE) or of Prisma (P1001). */
const SQLSTATE = /^(\d[\dA-Z]{4}|XX\d{3})$/;

interface Reason {
  /** Of PostgreSQL, a socket or Prisma. */
  codes: string[];
  /** May contain what a user sent. */
  texts: string[];
}

/** An error, and those below it: Prisma puts the error of its adapter below `meta`. */
function* reasonsOf(error: unknown): Generator<Reason> {
  const seen = new Set<unknown>();
  for (const next = [error]; next.length > 0;) {
    const one = next.shift();
    if (typeof one !== 'object' || one === null || seen.has(one)) continue;
    seen.add(one);
    const { code, originalCode, message, cause, kind, meta } = one as Record<string, unknown>;
    const isText = (value: unknown): value is string => typeof value === 'string';
    yield { codes: [originalCode, code].filter(isText), texts: [message, kind].filter(isText) };
    next.push((meta as { driverAdapterError?: unknown } | null | undefined)?.driverAdapterError, cause);
  }
}

/**
 * Whether a statement failed because PostgreSQL is unavailable or shutting down. It did not run, or was rolled back, and may be repeated
 * later. Texts count only when no SQLSTATE says what happened.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  const reasons = [...reasonsOf(error)];
  const codes = reasons.flatMap((reason) => reason.codes);
  const state = codes.find((code) => SQLSTATE.test(code));
  if (state !== undefined) return STATES.test(state);
  return (
    codes.some((code) => SOCKET.has(code) || PRISMA.has(code)) || reasons.some(({ texts }) => texts.some((text) => MESSAGES.test(text)))
  );
}

/** PostgreSQL could not extend a table, or write a file, because its disk is full (SQLSTATE 53100). */
export function isDiskFull(error: unknown): boolean {
  return [...reasonsOf(error)].some(
    ({ codes, texts }) => codes.includes('53100') || texts.some((text) => text.includes('No space left on device')),
  );
}

/** SQLSTATE class 40: PostgreSQL rolled the statement back in favour of another (deadlock, serialisation). It may be repeated at once. */
export function isRolledBack(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && code.startsWith('40');
}

/** Prisma's code for a violated unique constraint. */
export const isDuplicate = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === 'P2002';

/** SQLSTATE classes 22 and 54: PostgreSQL refused a value, whatever the table contains. Nothing was written. */
export function isRefusedValue(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && /^(22|54)/.test(code);
}

/** Whether PostgreSQL refused a text: a NUL (in JSON too), or half of a surrogate pair in JSON. */
export function isUnstorableText(error: unknown): boolean {
  return [...reasonsOf(error)].some(
    ({ codes, texts }) =>
      codes.includes('22021') ||
      codes.includes('22P05') ||
      (codes.includes('22P02') && texts.some((text) => text.endsWith('for type json'))),
  );
}
