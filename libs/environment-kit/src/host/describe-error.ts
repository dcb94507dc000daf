/** `TypeError: message`, as the reference words an exception of an environment. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
