import { PalestraError } from '@palestra/protocol';

/** Deeper than any real task, action or transcript; far from where JSON.stringify and our own walks overflow the stack. */
export const MAX_JSON_DEPTH = 500;
/** Members and elements of one document. JavaScript needs some 50 bytes for each, and JSON only two. */
export const MAX_JSON_VALUES = 2_000_000;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Throws `invalid_json` for a document too deep or with too many values to parse safely. Whether it is JSON at all is for the parser. */
export function assertBoundedJson(text: Buffer, maxDepth: number, maxValues = MAX_JSON_VALUES): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text[at]) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        values += 1;
        if ((depth += 1) > maxDepth)
          throw new PalestraError('invalid_json', { detail: `The JSON is nested deeper than ${maxDepth} levels.` });
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
      case COMMA:
        if ((values += 1) > maxValues) throw new PalestraError('invalid_json', { detail: `The JSON has more than ${maxValues} values.` });
    }
  }
}

/** Index of the quote that ends the string which begins at `start`; the end of the text when none does. */
function endOfString(text: Buffer, start: number): number {
  for (let at = start + 1; ; at += 1) {
    at = text.indexOf(QUOTE, at);
    if (at === -1) return text.length;
    let escapes = 0;
    while (text[at - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
}
