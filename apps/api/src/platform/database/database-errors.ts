/** SQLSTATE classes of an unavailable server: connection, resources, operator intervention, system, internal. */
const STATES = /^(08|53|57|58|XX)/;
const SOCKET = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);
const PRISMA = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024']);
/** Connection errors of node-postgres and of Prisma's adapter have no code. */
const MESSAGES =
  /connection (terminated|ended|closed|error)|after calling end on the pool|not queryable|timeout exceeded when trying to connect|can't reach database|server closed the connection|DatabaseNotReachable|ConnectionClosed|SocketTimeout|TooManyConnections/i;

/**
 * Whether a statement failed because PostgreSQL is unavailable or shutting down. It did not run, or was rolled back, and may be repeated
 * later.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, originalCode, message, cause, kind, meta } = error as Record<string, unknown>;
  if (typeof originalCode === 'string' && STATES.test(originalCode)) return true;
  if (typeof code === 'string' && (STATES.test(code) || SOCKET.has(code) || PRISMA.has(code))) return true;
  if (typeof message === 'string' && MESSAGES.test(message)) return true;
  if (typeof kind === 'string' && MESSAGES.test(kind)) return true;
  // Prisma puts the error of its adapter below `meta`.
  if (isDatabaseUnavailable((meta as { driverAdapterError?: unknown } | null | undefined)?.driverAdapterError)) return true;
  return cause !== error && isDatabaseUnavailable(cause);
}

/** PostgreSQL could not extend a table, or write a file, because its disk is full (SQLSTATE 53100). */
export function isDiskFull(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, originalCode, message, cause, meta } = error as Record<string, unknown>;
  if (code === '53100' || originalCode === '53100') return true;
  if (typeof message === 'string' && message.includes('No space left on device')) return true;
  return [cause, (meta as { driverAdapterError?: unknown } | null | undefined)?.driverAdapterError].some(
    (inner) => inner !== error && isDiskFull(inner),
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
  if (typeof error !== 'object' || error === null) return false;
  const { code, originalCode, message, cause, meta } = error as Record<string, unknown>;
  for (const state of [code, originalCode]) if (state === '22021' || state === '22P05') return true;
  if (code === '22P02' && typeof message === 'string' && message.endsWith('for type json')) return true;
  return [cause, (meta as { driverAdapterError?: unknown } | null | undefined)?.driverAdapterError].some(
    (inner) => inner !== error && isUnstorableText(inner),
  );
}
