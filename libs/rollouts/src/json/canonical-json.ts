import { sha256Hex } from './hash.ts';
import { clean, cleanText, parseTolerant } from './tolerant-json.ts';

/**
 * JSON with one spelling a value, after RFC 8785: members sorted by UTF-16 code units, no white space, numbers as ECMAScript prints
 * the double. So `1`, `1.0`, `1e0` and `10E-1` agree, whichever language wrote them; integers beyond 2^53 agree when they are the
 * same double. On top of the RFC: NaN and infinities are null, strings are repaired as they are when stored (`cleanText`).
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null';
    case 'string':
      return JSON.stringify(cleanText(value));
    case 'boolean':
      return String(value);
    case 'object': {
      if (value === null) return 'null';
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
      const members = Object.entries(value).filter(([, item]) => item !== undefined);
      members.sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
      return `{${members.map(([key, item]) => `${JSON.stringify(cleanText(key))}:${canonicalJson(item)}`).join(',')}}`;
    }
    default:
      return 'null';
  }
}

/**
 * SHA-256 (hex) of a tool call's arguments, by which an uploaded call is recognised in the session ledger: of the canonical JSON of
 * the text. No text, blank text and `null` are the empty object, because clients differ in how they call a tool without arguments.
 * Text that is no JSON is hashed trimmed, under a mark that no JSON text begins with.
 */
export function canonicalArgsHash(jsonText: string | null): string {
  const text = (jsonText ?? '').trim();
  if (text === '') return sha256Hex('{}');
  let value: unknown;
  try {
    value = clean(parseTolerant(text).value).value;
  } catch {
    return sha256Hex(`text:${cleanText(text)}`);
  }
  return sha256Hex(canonicalJson(value ?? {}));
}
