import { LosslessNumber, stringify as stringifyLossless } from 'lossless-json';
import type { JsonObject, JsonValue } from './json.ts';

/**
 * JSON that keeps every number as it was written: `1.0` stays `1.0` (Python tells it from `1`), 64-bit ids keep their digits,
 * `1e400` survives. Numbers that JavaScript writes back identically are plain numbers, all others are `LosslessNumber`s.
 */

/** Finds texts that may hold such a number; also hits inside strings, which only costs the slower parser. */
const RISKY_NUMBER = /[\d.]{16}|\d[eE][-+\d]|\.\d*0(?!\d)|-0(?![.\d])/;
const LOSSLESS_MARK = '"isLosslessNumber":true';

/**
 * The parser of the lossless-json package reads character by character, and needs forty bytes for each of a long string. So the native one reads
 * numbers that it would change as marked strings instead.
 */
function markNumbers(text: string, mark: string): string {
  let marked = '';
  let kept = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const start = at;
      while (isOfNumber(text.charCodeAt(at + 1))) at += 1;
      const literal = text.slice(start, at + 1);
      if (String(Number(literal)) === literal) continue;
      marked += `${text.slice(kept, start)}"${mark}${literal}"`;
      kept = at + 1;
    }
  }
  return kept === 0 ? text : marked + text.slice(kept);
}

const [QUOTE, BACKSLASH, MINUS, ZERO, NINE] = [0x22, 0x5c, 0x2d, 0x30, 0x39];
/** Digits, and what else numbers have: `+`, `-`, `.`, `E`, `e`. */
const isOfNumber = (code: number): boolean =>
  (code >= ZERO && code <= NINE) || code === MINUS || code === 0x2b || code === 0x2e || code === 0x45 || code === 0x65;

/** Index of the quote that ends the string which begins at `start`, of a text that is JSON. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
}

/** A text that does not occur in another one, and that JSON writes as it is. */
function newMark(text: string): string {
  for (;;) {
    const mark = `#${Math.random().toString(36).slice(2, 10)}`;
    if (!text.includes(mark)) return mark;
  }
}

function readMarks(value: JsonValue, mark: string): JsonValue {
  if (typeof value === 'string') return value.startsWith(mark) ? new LosslessNumber(value.slice(mark.length)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) value[index] = readMarks(value[index], mark);
    return value;
  }
  const object = value as Record<string, JsonValue>;
  for (const key of Object.keys(object)) {
    const member = object[key];
    const read = readMarks(member, mark);
    // A member that is called `__proto__` is set by its definition only.
    if (read !== member) Object.defineProperty(object, key, { value: read, writable: true, enumerable: true, configurable: true });
  }
  return value;
}

/** Throws a SyntaxError on anything that is not one JSON document. A key `__proto__` is an ordinary key. */
export function parseJson(text: string): JsonValue {
  const plain: JsonValue = JSON.parse(text);
  if (!RISKY_NUMBER.test(text)) return plain;
  const mark = newMark(text);
  const marked = markNumbers(text, mark);
  if (marked === text) return plain;
  try {
    return readMarks(JSON.parse(marked), mark);
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

/** A JSON object: neither an array nor a `LosslessNumber`. */
export const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof LosslessNumber);
