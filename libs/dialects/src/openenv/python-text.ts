import { type JsonValue, toPlainNumber } from '@palestra/protocol';

/** Words of Python that OpenEnv's server puts into its errors. */

export function pythonTypeOf(value: JsonValue): string {
  if (value === null) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'string') return 'str';
  if (typeof value === 'boolean') return 'bool';
  const number = toPlainNumber(value);
  if (number === null) return 'dict';
  return Number.isInteger(number) ? 'int' : 'float';
}

/** As `str()` writes a value. */
export const pythonText = (value: JsonValue): string => (typeof value === 'string' ? value : pythonRepr(value));

/** As `repr()` writes a value. */
export function pythonRepr(value: JsonValue): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    return quote + value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll(quote, `\\${quote}`) + quote;
  }
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(', ')}]`;
  if (toPlainNumber(value) !== null) return String(value);
  return `{${Object.entries(value as object)
    .map(([key, member]) => `${pythonRepr(key)}: ${pythonRepr(member)}`)
    .join(', ')}}`;
}

/** What Python's `json` says of a text that is no JSON document. */
export function jsonErrorOf(text: string): string {
  const found = new Scanner(text).problem();
  const before = text.slice(0, found.at);
  const line = before.split('\n').length;
  // Python counts characters, where a text here has two units for one beyond the basic plane.
  const lengthOf = (part: string) => Array.from(part).length;
  const column = lengthOf(before.slice(before.lastIndexOf('\n') + 1)) + 1;
  return `${found.what}: line ${line} column ${column} (char ${lengthOf(before)})`;
}

class Problem extends Error {
  constructor(
    readonly what: string,
    readonly at: number,
  ) {
    super(what);
  }
}

/** Reads as Python's decoder does, to stumble where it stumbles. */
class Scanner {
  #at = 0;
  constructor(readonly text: string) {}

  problem(): { what: string; at: number } {
    try {
      this.#space();
      this.#value();
      this.#space();
      if (this.#at < this.text.length) throw new Problem('Extra data', this.#at);
    } catch (error) {
      if (error instanceof Problem) return error;
      if (!(error instanceof RangeError)) throw error;
    }
    return { what: 'Expecting value', at: 0 };
  }

  #space(): void {
    while (' \t\n\r'.includes(this.text[this.#at] ?? 'x')) this.#at += 1;
  }

  #value(): void {
    const first = this.text[this.#at];
    if (first === '"') return this.#string();
    if (first === '{') return this.#object();
    if (first === '[') return this.#array();
    const word = /^(?:null|true|false|NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)/.exec(
      this.text.slice(this.#at, this.#at + 400),
    );
    if (word === null) throw new Problem('Expecting value', this.#at);
    this.#at += word[0].length;
  }

  #string(): void {
    const begin = this.#at;
    for (this.#at += 1; this.#at < this.text.length; this.#at += 1) {
      const char = this.text[this.#at]!;
      if (char === '"') return void (this.#at += 1);
      if (char < ' ') throw new Problem('Invalid control character at', this.#at);
      if (char !== '\\') continue;
      const escape = this.text[this.#at + 1];
      if (escape === undefined) break;
      if (escape === 'u' && !/^[\da-fA-F]{4}$/.test(this.text.slice(this.#at + 2, this.#at + 6)))
        throw new Problem('Invalid \\uXXXX escape', this.#at + 1);
      if (!'"\\/bfnrtu'.includes(escape)) throw new Problem('Invalid \\escape', this.#at);
      this.#at += escape === 'u' ? 5 : 1;
    }
    throw new Problem('Unterminated string starting at', begin);
  }

  #object(): void {
    this.#at += 1;
    this.#space();
    if (this.text[this.#at] === '}') return void (this.#at += 1);
    for (;;) {
      if (this.text[this.#at] !== '"') throw new Problem('Expecting property name enclosed in double quotes', this.#at);
      this.#string();
      this.#space();
      if (this.text[this.#at] !== ':') throw new Problem("Expecting ':' delimiter", this.#at);
      this.#at += 1;
      this.#space();
      this.#value();
      if (this.#ended('}')) return;
    }
  }

  #array(): void {
    this.#at += 1;
    this.#space();
    if (this.text[this.#at] === ']') return void (this.#at += 1);
    do this.#value();
    while (!this.#ended(']'));
  }

  /** True at the closing bracket; false after a comma. */
  #ended(close: '}' | ']'): boolean {
    this.#space();
    const char = this.text[this.#at];
    if (char !== close && char !== ',') throw new Problem("Expecting ',' delimiter", this.#at);
    this.#at += 1;
    if (char === ',') this.#space();
    return char === close;
  }
}
