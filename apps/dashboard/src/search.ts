import { isJson } from './format/json.ts';

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

/**
 * Reads a value of an address. The router quotes a text only where its plain form means something else, so quotes around
 * any other text are part of it: `?q="file not found"` is a phrase. A number keeps the digits that were written.
 */
export function readSearchValue(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'number') return String(value) === text ? value : text;
  return typeof value === 'string' && !isJson(value) ? text : value;
}
