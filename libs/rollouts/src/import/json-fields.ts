import { isObject, type JsonObject } from '@palestra/protocol';

/** Readers of foreign JSON. Each returns undefined for a missing value or another type, and never throws. */

export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);
/** A reward: a number, also as text, as tables keep it. A boolean counts as 1 or 0. */
export function rewardNumber(value: unknown): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return numberOf(typeof value === 'string' && value.trim() !== '' ? Number(value) : value);
}
export const intOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= 2_147_483_647 ? value : undefined;

/** The first value for which `read` returns something. */
export function first<T>(read: (value: unknown) => T | undefined, ...values: unknown[]): T | undefined {
  for (const value of values) {
    const found = read(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A string, or the JSON text of another value; undefined for null and undefined. */
export function textOrJson(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Parses JSON in a string, as some formats store it; returns other values unchanged. */
export function unquoted(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

/** Removes members that are undefined, null, or an empty object or list. */
export function compact(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(
      ([, value]) => value !== undefined && value !== null && !(typeof value === 'object' && Object.keys(value).length === 0),
    ),
  );
}

/** Milliseconds since the epoch of an ISO time, or of a number in seconds or milliseconds. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return Math.trunc(value < 1e11 ? value * 1000 : value);
  if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}/.test(value)) return undefined;
  const time = Date.parse(value);
  return Number.isNaN(time) ? undefined : time;
}
