/**
 * JSON as Python trainers send it (docs/reference/ors.md#json-values): bare `NaN`, `Infinity` and `-Infinity` become null; U+0000 is
 * removed and lone surrogates become U+FFFD in strings and keys, because PostgreSQL accepts none of them. Values nested deeper than
 * `MAX_DEPTH` become JSON text. Keys such as `__proto__` are ordinary keys.
 */
const MAX_DEPTH = 200;

/** Marks a bare non-finite number between the two passes. A private-use character that no client sends by chance. */
const NONFINITE = '\uE0F8nonfinite\uE0F9';
const NEEDS_CLEANING = /\\u0000|\\u[dD][89a-fA-F]|\uE0F8/;

/** `1e400` is valid JSON and parses as Infinity. */
const HUGE_NUMBER = /\d[eE]\+?\d{3}|\d{300}/;

/** More opening brackets in a row than `MAX_DEPTH` allows. Brackets inside strings only cost a copy. */
function isDeep(text: string): boolean {
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 91 || code === 123) depth += 1;
    else if (code === 93 || code === 125) depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

/** A parsed value whose strings still need `clean`. `dirty`: cleaning may change something. */
export interface TolerantJson {
  value: unknown;
  dirty: boolean;
}

/** Throws a SyntaxError on text that is not JSON even with these exceptions. */
export function parseTolerant(text: string): TolerantJson {
  let value: unknown;
  let marked = text;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw new SyntaxError('JSON is nested too deeply', { cause: error });
    marked = markNonfinite(text);
    if (marked === text) throw error;
    value = JSON.parse(marked);
  }
  return { value, dirty: NEEDS_CLEANING.test(marked) || HUGE_NUMBER.test(text) || isDeep(text) };
}

/** Replaces the bare tokens outside strings by a marked string. Linear in the length of the text. */
function markNonfinite(text: string): string {
  const parts: string[] = [];
  let from = 0;
  while (from < text.length) {
    const quote = text.indexOf('"', from);
    const end = quote === -1 ? text.length : quote;
    parts.push(text.slice(from, end).replaceAll(/-?\bInfinity\b|\bNaN\b/g, `"${NONFINITE}"`));
    if (quote === -1) break;
    from = endOfString(text, quote);
    parts.push(text.slice(quote, from));
  }
  return parts.join('');
}

/** The index after the string that starts at `quote`. */
function endOfString(text: string, quote: number): number {
  for (let index = text.indexOf('"', quote + 1); index !== -1; index = text.indexOf('"', index + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(index - 1 - backslashes) === 92) backslashes += 1;
    if (backslashes % 2 === 0) return index + 1;
  }
  return text.length;
}

export interface Cleaned {
  value: unknown;
  /** The value contained NaN or Infinity. */
  nonfinite: boolean;
}

/** A copy of the value that PostgreSQL can store. */
export function clean(value: unknown): Cleaned {
  const state = { nonfinite: false };
  return { value: cleanValue(value, 0, state), nonfinite: state.nonfinite };
}

function cleanValue(value: unknown, depth: number, state: { nonfinite: boolean }): unknown {
  if (typeof value === 'string') {
    if (value === NONFINITE) {
      state.nonfinite = true;
      return null;
    }
    return cleanText(value);
  }
  if (typeof value === 'number') {
    // 1e400 is valid JSON and parses as Infinity.
    if (Number.isFinite(value)) return value;
    state.nonfinite = true;
    return null;
  }
  if (value === null || typeof value !== 'object') return value;
  if (depth >= MAX_DEPTH) return cleanText(textOf(value));
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, depth + 1, state));
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const property = { value: cleanValue(item, depth + 1, state), enumerable: true, configurable: true, writable: true };
    Object.defineProperty(copy, cleanText(key), property);
  }
  return copy;
}

/** Removes U+0000 and replaces lone surrogates by U+FFFD. */
export function cleanText(text: string): string {
  const withoutNul = text.includes('\u0000') ? text.replaceAll('\u0000', '') : text;
  return withoutNul.isWellFormed() ? withoutNul : withoutNul.toWellFormed();
}

/** Cuts the text without splitting a surrogate pair, which PostgreSQL would reject. */
export const cutText = (text: string, characters: number): string =>
  text.length <= characters ? text : text.slice(0, characters).toWellFormed();

function textOf(value: object): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '(nested too deeply)';
  }
}
