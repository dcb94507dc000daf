import type { JsonObject } from '@palestra/protocol';

/** Reads of JSON that nobody promised anything about. Each answers null, never throws, on what it does not understand. */

export const MAX_INT = 2_147_483_647;

export const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
/** A non-empty string. */
export const asText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
/** A non-empty string, or a number or bigint as its text: ids come as either. */
export const asId = (value: unknown): string | null =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : asText(value);
export const asNumber = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
/**
 * Trainers hold rewards in single precision. What is infinite there is no number here either, and what is 0 there is 0: figures
 * square rewards, and the squares of larger and smaller ones leave the range of doubles, which PostgreSQL answers by an error.
 */
export function rewardInRange(reward: number): number | null {
  const single = Math.fround(reward);
  if (!Number.isFinite(single)) return null;
  return single === 0 ? single : reward;
}

export const asReward = (value: unknown): number | null => {
  const number = asNumber(value);
  return number === null ? null : rewardInRange(number);
};
/** An integer that PostgreSQL's `integer` holds. */
export const asInt = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= MAX_INT ? value : null;
/** The same, from 0. */
export const asCount = (value: unknown): number | null => {
  const int = asInt(value);
  return int !== null && int >= 0 ? Math.abs(int) : null;
};
/** Decimal digits alone, as an integer from 0. */
export const intOfDigits = (digits: string | null | undefined): number | null =>
  typeof digits === 'string' && /^\d{1,10}$/.test(digits) ? asCount(Number(digits)) : null;

/** Own members only: metadata with a key `constructor` must not answer for an absent one. */
export const own = (object: JsonObject, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

export interface Found<T> {
  value: T;
  /** Where it stood, e.g. `metadata.step`. */
  key: string;
}

/** The first of the `keys`, in metadata and then in `rollout_info`, under which `read` finds something. */
export function findField<T>(
  places: { metadata: JsonObject; info: JsonObject },
  keys: readonly string[],
  read: (value: unknown) => T | null,
): Found<T> | null {
  for (const [place, object] of [
    ['metadata', places.metadata],
    ['rollout_info', places.info],
  ] as const) {
    for (const key of keys) {
      const value = read(own(object, key));
      if (value !== null) return { value, key: `${place}.${key}` };
    }
  }
  return null;
}
