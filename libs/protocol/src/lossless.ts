import { LosslessNumber, parse as parseLossless, stringify as stringifyLossless } from 'lossless-json';
import type { JsonValue } from './json.ts';

/**
 * JSON that keeps every number as it was written: `1.0` stays `1.0` (Python tells it from `1`), 64-bit ids keep their digits,
 * `1e400` survives. Numbers that JavaScript writes back identically are plain numbers, all others are `LosslessNumber`s.
 */

/** Finds texts that may hold such a number; also hits inside strings, which only costs the slower parser. */
const RISKY_NUMBER = /[\d.]{16}|\d[eE][-+\d]|\.\d*0(?!\d)|-0(?![.\d])/;
const LOSSLESS_MARK = '"isLosslessNumber":true';

function readNumber(literal: string): number | LosslessNumber {
  const value = Number(literal);
  return String(value) === literal ? value : new LosslessNumber(literal);
}

/** Throws a SyntaxError on anything that is not one JSON document. A key `__proto__` is an ordinary key. */
export function parseJson(text: string): JsonValue {
  const plain: JsonValue = JSON.parse(text);
  if (!RISKY_NUMBER.test(text)) return plain;
  try {
    return parseLossless(text, undefined, { parseNumber: readNumber, onDuplicateKey: ({ newValue }) => newValue });
  } catch (error) {
    if (error instanceof RangeError) throw new SyntaxError('JSON is nested too deeply');
    throw error;
  }
}

/** The JSON text of a value; NaN and infinities become null, `undefined` members are left out. */
export function stringifyJson(value: JsonValue): string {
  const text = JSON.stringify(value) ?? 'null';
  return text.includes(LOSSLESS_MARK) ? (stringifyLossless(value) ?? 'null') : text;
}

/** A plain number, also of a `LosslessNumber` (rounded to a double); null for anything else. */
export function toPlainNumber(value: JsonValue): number | null {
  if (typeof value === 'number') return value;
  return value instanceof LosslessNumber ? Number(value.value) : null;
}

/** As `toPlainNumber`; null also for what no double holds, as `1e400`. */
export function toFiniteNumber(value: JsonValue): number | null {
  const number = toPlainNumber(value);
  return Number.isFinite(number) ? number : null;
}
