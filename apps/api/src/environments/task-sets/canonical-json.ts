import { createHash } from 'node:crypto';
import { LosslessNumber } from 'lossless-json';
import { type JsonValue, stringifyJson } from '@palestra/protocol';

/** JSON text with the keys of every object sorted by code unit. Numbers keep their text. */
export const canonicalJson = (value: JsonValue): string => stringifyJson(sorted(value, (number) => number));

/** Digest of a specification. A client may write `1e5` as `100000.0` and change the order of keys; the digest stays the same. */
export function specDigest(spec: JsonValue): Buffer {
  const text = stringifyJson(sorted(spec, (number) => (isInteger(number) ? number : Number(number.value))));
  return createHash('sha256').update(text).digest();
}

const isInteger = ({ value }: LosslessNumber) => /^-?\d+$/.test(value);

function sorted(value: JsonValue, numberOf: (number: LosslessNumber) => LosslessNumber | number): JsonValue {
  if (value instanceof LosslessNumber) return numberOf(value);
  if (Array.isArray(value)) return value.map((item) => sorted(item, numberOf));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item, numberOf)]));
}
