/** Replaces NUL, which JSON strings may contain and PostgreSQL text may not. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text);
