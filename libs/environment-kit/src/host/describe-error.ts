import { inspect } from 'node:util';

/** The text of a thrown value: the message of an error, else its name; other values as in the console. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return typeof error === 'string' ? error : inspect(error, { depth: 2 });
}

/** `TypeError: message`, like the reference server describes an exception. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : errorText(error);
}
