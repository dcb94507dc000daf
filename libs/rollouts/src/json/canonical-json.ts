import { sha256Hex } from './hash.ts';
import { clean, cleanText, parseTolerant } from './tolerant-json.ts';

/**
 * Canonical JSON after RFC 8785: members sorted by UTF-16 code units, no white space, numbers as ECMAScript prints the double. So `1`,
 * `1.0`, `1e0` and `10E-1` agree; integers beyond 2^53 agree if they are the same double. In addition NaN and infinities become null, and
 * strings are repaired as for storage (`cleanText`).
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

/** SHA-256 (hex) of the canonical JSON. `integrations/python/src/palestra/canonical.py` has the same hashes. */
export const canonicalHash = (value: unknown): string => sha256Hex(canonicalJson(value));

/**
 * SHA-256 (hex) of the arguments of a tool call, to find an uploaded call in the session ledger: of the canonical JSON of the text. No
 * text, blank text and `null` count as the empty object, because clients differ for tools without arguments. Text that is not JSON is
 * hashed trimmed, behind a mark with which no JSON text starts.
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
