import { QueryError } from './query-error.ts';

export interface Piece {
  position: number;
  length: number;
}
export interface RegexPiece extends Piece {
  pattern: string;
  ignoreCase: boolean;
}
export interface TextPiece extends Piece {
  text: string;
}

const space = /\s/;
const keyPattern = /[A-Za-z_][A-Za-z0-9_.]*(?=:)/y;
const textWord = /[^\s"()]+/y;
const valueWord = /[^\s"(),]+/y;
const escapes: Record<string, string> = { n: '\n', t: '\t', '"': '"', '\\': '\\' };

/** Lexical scanner: one cursor over the text. The parser asks for the kind of token, because the meaning of a word depends on its context. */
export class Scanner {
  position = 0;
  readonly text: string;
  /** No slash after this position closes a regex. Keeps texts such as `/a /a /a` linear. */
  #noSlashFrom = Infinity;

  constructor(text: string) {
    this.text = text;
  }

  get done(): boolean {
    return this.position >= this.text.length;
  }

  peek(): string {
    return this.text[this.position] ?? '';
  }

  skipSpace(): void {
    while (!this.done && space.test(this.peek())) this.position++;
  }

  take(character: string): boolean {
    if (this.peek() !== character) return false;
    this.position++;
    return true;
  }

  /** At the end, a space, a closing parenthesis, or (after a value) a comma. */
  atBoundary(comma: boolean): boolean {
    const next = this.peek();
    return next === '' || next === ')' || (comma && next === ',') || space.test(next);
  }

  /** Takes a key and its colon; undefined if there is none. */
  takeKey(): TextPiece | undefined {
    const found = this.#match(keyPattern);
    if (found !== undefined) this.position++;
    return found;
  }

  takeTextWord(): TextPiece | undefined {
    return this.#match(textWord);
  }

  takeValueWord(): TextPiece | undefined {
    return this.#match(valueWord);
  }

  /** `"..."` with the escapes \" \\ \n \t. The opening quote is at the cursor. */
  takeString(): TextPiece {
    const position = this.position++;
    let text = '';
    while (!this.done) {
      const character = this.text[this.position++]!;
      if (character === '"') return { text, position, length: this.position - position };
      if (character !== '\\') {
        text += character;
        continue;
      }
      const escaped = escapes[this.peek()];
      if (escaped === undefined && !this.done)
        throw this.error(`Unknown escape. In quotes only \\" \\\\ \\n and \\t mean something.`, this.position - 1, 2);
      text += escaped ?? '';
      this.position++;
    }
    throw this.error('The quote is never closed: add ".', position, this.text.length - position);
  }

  /**
   * `/.../` with an optional i and a boundary behind it; undefined for other texts, such as /usr/bin. A regex does not start with a
   * space or a slash, so that `a / b / c` are words.
   */
  takeRegex(comma: boolean): RegexPiece | undefined {
    const position = this.position;
    const first = this.text[position + 1] ?? '';
    if (first === '' || first === '/' || space.test(first)) return undefined;
    const end = this.#closingSlash(position + 1);
    if (end === undefined) return undefined;
    this.position = end + 1;
    const ignoreCase = this.take('i');
    if (!this.atBoundary(comma)) {
      this.position = position;
      return undefined;
    }
    return { pattern: this.text.slice(position + 1, end), ignoreCase, position, length: this.position - position };
  }

  error(message: string, position: number, length: number, suggestion?: string): QueryError {
    return new QueryError(message, { position, length, token: this.text.slice(position, position + length), suggestion });
  }

  #closingSlash(from: number): number | undefined {
    if (from >= this.#noSlashFrom) return undefined;
    for (let at = from; at < this.text.length; at++) {
      if (this.text[at] === '\\') at++;
      else if (this.text[at] === '/') return at;
    }
    this.#noSlashFrom = from;
    return undefined;
  }

  #match(pattern: RegExp): TextPiece | undefined {
    pattern.lastIndex = this.position;
    const text = pattern.exec(this.text)?.[0];
    if (text === undefined) return undefined;
    const position = this.position;
    this.position += text.length;
    return { text, position, length: text.length };
  }
}
