/** Parsers of URL search parameters. Invalid values are ignored, so that a mistyped link still opens. */
export function searchText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A whole number of at least `least`. */
export function searchIndex(value: unknown, least = 1): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) && number >= least ? number : undefined;
}

/** Comma-separated names as one text. */
export function searchList(value: unknown): string | undefined {
  return Array.isArray(value) ? searchText(value.join(',')) : searchText(value);
}
