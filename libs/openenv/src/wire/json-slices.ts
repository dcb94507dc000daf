/**
 * Members of JSON objects as slices of their text, so that passed-on values are neither parsed nor serialised and numbers keep their
 * spelling.
 */

export interface Member {
  key: string;
  /** JSON text. */
  value: string;
}

const [SPACE, QUOTE, COMMA, COLON, BACKSLASH] = [0x20, 0x22, 0x2c, 0x3a, 0x5c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Returns the members of the object at `start` of a valid JSON text, in order. null if the text differs from that of `JSON.stringify` in
 * more than numbers: white space or unnecessary escapes.
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

/** Whether a text may contain escapes that `JSON.stringify` does not write. */
export const hasOddEscapes = (text: string): boolean => text.includes('\\u') || text.includes('\\/');

/** Index after the closing quote of the string at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    at = text.indexOf('"', at);
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at + 1;
  }
}

/** Index of the comma or bracket after the value at `start`; -1 if there is white space. */
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
