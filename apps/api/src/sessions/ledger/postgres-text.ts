/** NUL is legal in JSON strings and illegal in PostgreSQL text. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text);
