import { LosslessNumber, stringify as stringifyLossless } from 'lossless-json';
import type { JsonObject, JsonValue } from './json.ts';

/**
 * JSON that preserves the written form of every number: `1.0` stays `1.0` (a float in Python, not the int `1`), 64-bit ids keep their
 * digits, `1e400` survives. Numbers that JavaScript prints unchanged are plain numbers, all others are `LosslessNumber`s.
 */

/** Matches texts that may contain such a number. A match inside a string only costs the slower parser. */
const RISKY_NUMBER = /[\d.]{16}|\d[eE][-+\d]|\.\d*0(?!\d)|-0(?![.\d])/;
const LOSSLESS_MARK = '"isLosslessNumber":true';

/**
 * The parser of the lossless-json package reads each character and needs forty bytes per character of a long string. Instead the native
 * parser reads the numbers that it would change as marked strings.
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
/** Digits and the other characters of numbers: `+`, `-`, `.`, `E`, `e`. */
const isOfNumber = (code: number): boolean =>
  (code >= ZERO && code <= NINE) || code === MINUS || code === 0x2b || code === 0x2e || code === 0x45 || code === 0x65;

/** Index of the quote that ends the string that starts at `start`. The text must be JSON. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
}

/** A text that does not occur in `text` and needs no JSON escapes. */
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
    // Assignment would set the prototype for a member `__proto__`.
    if (read !== member) Object.defineProperty(object, key, { value: read, writable: true, enumerable: true, configurable: true });
  }
  return value;
}

/** Throws a SyntaxError for a text that is not one JSON document. A key `__proto__` is an ordinary key. */
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

/** The JSON text of a value. NaN and infinities become null; `undefined` members are omitted. */
export function stringifyJson(value: JsonValue): string {
  const text = JSON.stringify(value) ?? 'null';
  return text.includes(LOSSLESS_MARK) ? (stringifyLossless(value) ?? 'null') : text;
}

/** The plain number of a number or a `LosslessNumber` (rounded to a double); null for other values. */
export function toPlainNumber(value: JsonValue): number | null {
  if (typeof value === 'number') return value;
  return value instanceof LosslessNumber ? Number(value.value) : null;
}

/** As `toPlainNumber`, but null for numbers beyond a double, such as `1e400`. */
export function toFiniteNumber(value: JsonValue): number | null {
  const number = toPlainNumber(value);
  return Number.isFinite(number) ? number : null;
}

/** A JSON object: neither an array nor a `LosslessNumber`. */
export const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof LosslessNumber);
