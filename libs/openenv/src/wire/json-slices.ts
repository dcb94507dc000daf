/** Members of JSON objects as slices of their text: what is only passed on need not be read, number for number, and written again. */

export interface Member {
  key: string;
  /** JSON text of the value. */
  value: string;
}

const [SPACE, QUOTE, COMMA, COLON, BACKSLASH] = [0x20, 0x22, 0x2c, 0x3a, 0x5c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The members of the object that begins at `start` of a text that is known to be JSON, in order; null where `JSON.stringify` would write it in another
 * way but for its numbers: with white space, or with escapes that need not be.
 */
export function membersAt(text: string, start: number): Member[] | null {
  const members: Member[] = [];
  if (text.charCodeAt(start + 1) === CLOSE_BRACE) return members;
  for (let at = start + 1; ; at += 1) {
    if (text.charCodeAt(at) !== QUOTE) return null;
    const colon = endOfString(text, at);
    if (text.charCodeAt(colon) !== COLON) return null;
    const end = endOfValue(text, colon + 1);
    if (end < 0) return null;
    const key = text.slice(at + 1, colon - 1);
    if (key.includes('\\')) return null;
    members.push({ key, value: text.slice(colon + 1, end) });
    at = end;
    if (text.charCodeAt(at) === CLOSE_BRACE) return members;
  }
}

/** Whether a text may hold escapes that another writer would not use: then a slice of it is not what `JSON.stringify` writes. */
export const hasOddEscapes = (text: string): boolean => text.includes('\\u') || text.includes('\\/');

/** After the closing quote of the string at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    at = text.indexOf('"', at);
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at + 1;
  }
}

/** At what follows the value at `start`, a comma or a bracket; -1 where there is white space. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at) - 1;
    else if (char === COMMA && depth === 0) return at;
    else if (char === OPEN_BRACE || char === OPEN_BRACKET) depth += 1;
    else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) {
      if (depth === 0) return at;
      depth -= 1;
    } else if (char <= SPACE) return -1;
  }
  return -1;
}
