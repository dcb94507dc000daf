/**
 * Deeper than any real task, action or transcript, and far below the depth at which JSON.stringify or a recursive walk overflows the
 * stack.
 */
export const MAX_JSON_DEPTH = 500;
/** Limit of members and elements of one document. JavaScript needs about 50 bytes for each, JSON only two. */
export const MAX_JSON_VALUES = 2_000_000;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Finds JSON that is too deep or has too many values to be parsed safely. Does not validate JSON. */
export class JsonBounds {
  #depth = 0;
  #values = 0;
  #inString = false;
  /** Backslashes at the end of the string seen so far. */
  #backslashes = 0;

  constructor(
    readonly maxDepth = MAX_JSON_DEPTH,
    readonly maxValues = MAX_JSON_VALUES,
  ) {}

  /** Checks the next piece of a document. Returns the problem, to be read after "is", or null. */
  push(text: Uint8Array): string | null {
    for (let at = 0; at < text.length; at += 1) {
      if (this.#inString) {
        at = this.#endOfString(text, at);
        continue;
      }
      switch (text[at]) {
        case QUOTE:
          this.#inString = true;
          this.#backslashes = 0;
          break;
        case OPEN_ARRAY:
        case OPEN_OBJECT:
          this.#values += 1;
          if ((this.#depth += 1) > this.maxDepth) return `nested deeper than ${this.maxDepth} levels`;
          break;
        case CLOSE_ARRAY:
        case CLOSE_OBJECT:
          this.#depth = Math.max(0, this.#depth - 1);
          break;
        case COMMA:
          if ((this.#values += 1) > this.maxValues) return `of more than ${this.maxValues} values`;
      }
    }
    return null;
  }

  /** Ends a string in any state. */
  endString(): void {
    this.#inString = false;
  }

  /** Starts the next document. */
  reset(): void {
    this.#depth = 0;
    this.#values = 0;
    this.#inString = false;
  }

  /** Index of the next quote, which ends the string or is escaped; the last index of the text if there is none. */
  #endOfString(text: Uint8Array, start: number): number {
    const found = text.indexOf(QUOTE, start);
    const end = found === -1 ? text.length : found;
    let backslashes = 0;
    while (end - 1 - backslashes >= start && text[end - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (end - backslashes === start) backslashes += this.#backslashes;
    this.#backslashes = found === -1 ? backslashes : 0;
    if (found !== -1 && backslashes % 2 === 0) this.#inString = false;
    return end;
  }
}
