import type { JsonObject } from '@palestra/protocol';

/** Readers of untrusted JSON. Each returns null for unexpected values and never throws. */

export const MAX_INT = 2_147_483_647;

export const asObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
/** A non-empty string. */
export const asText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
/** A non-empty string, or a number or bigint as text, because ids come as either. */
export const asId = (value: unknown): string | null =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : asText(value);
export const asNumber = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
/**
 * Trainers hold rewards in single precision. A reward that is infinite there is null here, and one that is 0 there is 0: figures square
 * rewards, and other squares could leave the range of doubles, for which PostgreSQL raises an error.
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
/** An integer that fits PostgreSQL's `integer`. */
export const asInt = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= MAX_INT ? value : null;
/** An integer from 0 that fits PostgreSQL's `integer`. */
export const asCount = (value: unknown): number | null => {
  const int = asInt(value);
  return int !== null && int >= 0 ? Math.abs(int) : null;
};
/** Decimal digits as an integer from 0. */
export const intOfDigits = (digits: string | null | undefined): number | null =>
  typeof digits === 'string' && /^\d{1,10}$/.test(digits) ? asCount(Number(digits)) : null;

/** Reads an own property only: a missing key `constructor` must not return the inherited one. */
export const memberOf = (object: JsonObject, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

export interface Found<T> {
  value: T;
  /** The path of the value, e.g. `metadata.step`. */
  key: string;
}

/** The first of the `keys`, in metadata and then in `rollout_info`, for which `read` returns a value. */
export function findField<T>(
  parts: { metadata: JsonObject; info: JsonObject },
  keys: readonly string[],
  read: (value: unknown) => T | null,
): Found<T> | null {
  for (const [part, object] of [
    ['metadata', parts.metadata],
    ['rollout_info', parts.info],
  ] as const) {
    for (const key of keys) {
      const value = read(memberOf(object, key));
      if (value !== null) return { value, key: `${part}.${key}` };
    }
  }
  return null;
}
