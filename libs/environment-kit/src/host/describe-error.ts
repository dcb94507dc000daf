import { inspect } from 'node:util';

/** What was thrown in words: the message of an error, its name where it has none, and anything else as a console shows it. */
export function wordsOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === 'string' ? error : inspect(error, { depth: 2 });
}

/** `TypeError: message`, as the reference words an exception of an environment. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : wordsOf(error);
}
