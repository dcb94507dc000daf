/**
 * Finds where Python's `json.loads` fails, with the exact text of its exception, because models see that text. A port of CPython's C
 * scanner (3.8 to 3.12; 3.13 words a trailing comma differently). Positions are code points.
 */

export class PythonJsonError extends Error {
  override name = 'PythonJsonError';
}

/** CPython fails at its recursion limit. No real tool call is nested this deep. */
const MAX_DEPTH = 900;
const MAX_INT_DIGITS = 4_300;
const NON_FINITE = ['NaN', 'Infinity', '-Infinity'];

/**
 * The document as JSON. `NaN` and the infinities, which Python accepts and JSON does not, become a float that no double holds. Throws
 * `PythonJsonError` with the text of Python's exception for texts that `json.loads` rejects.
 */
export function checkPythonJson(text: string): string {
  const scanner = new Scanner(Array.from(text));
  if (text.startsWith('\ufeff')) throw scanner.error('Unexpected UTF-8 BOM (decode using utf-8-sig)', 0);
  const end = scanner.space(scanner.value(scanner.space(0), 0));
  if (end !== scanner.units.length) throw scanner.error('Extra data', end);
  return scanner.json();
}

/** Python's error text for a text that is not JSON. */
export function jsonErrorOf(text: string): string {
  try {
    checkPythonJson(text);
  } catch (error) {
    if (error instanceof PythonJsonError) return error.message;
    throw error;
  }
  // Python accepts NaN and the infinities, which are not JSON.
  return 'Expecting value: line 1 column 1 (char 0)';
}

class Scanner {
  /** The range `[from, to)` of each NaN or infinity. */
  readonly nonFinite: [number, number][] = [];

  constructor(readonly units: string[]) {}

  error(message: string, at: number): PythonJsonError {
    const before = this.units.slice(0, at);
    const line = before.filter((unit) => unit === '\n').length + 1;
    const column = at - before.lastIndexOf('\n');
    return new PythonJsonError(`${message}: line ${line} column ${column} (char ${at})`);
  }

  json(): string {
    const pieces: string[] = [];
    let done = 0;
    for (const [from, to] of this.nonFinite) {
      pieces.push(this.units.slice(done, from).join(''), '1e999');
      done = to;
    }
    return pieces.join('') + this.units.slice(done).join('');
  }

  /** The first position from `at` that is not JSON white space. */
  space(at: number): number {
    let next = at;
    while (' \t\n\r'.includes(this.units[next] ?? 'x')) next += 1;
    return next;
  }

  /** These methods return the position after the value that they read. */
  value(at: number, depth: number): number {
    const unit = this.units[at];
    if (unit === '"') return this.string(at + 1);
    if (unit === '{' || unit === '[') {
      const kind = unit === '{' ? 'object' : 'array';
      if (depth >= MAX_DEPTH)
        throw new PythonJsonError(`maximum recursion depth exceeded while decoding a JSON ${kind} from a unicode string`);
      return kind === 'object' ? this.object(at + 1, depth + 1) : this.array(at + 1, depth + 1);
    }
    for (const word of ['null', 'true', 'false', ...NON_FINITE]) {
      if (!this.says(word, at)) continue;
      const end = at + word.length;
      if (NON_FINITE.includes(word)) this.nonFinite.push([at, end]);
      return end;
    }
    return this.number(at);
  }

  says(word: string, at: number): boolean {
    return this.units.slice(at, at + word.length).join('') === word;
  }

  object(begin: number, depth: number): number {
    let at = this.space(begin);
    if (this.units[at] === '}') return at + 1;
    for (;;) {
      if (this.units[at] !== '"') throw this.error('Expecting property name enclosed in double quotes', at);
      at = this.space(this.string(at + 1));
      if (this.units[at] !== ':') throw this.error("Expecting ':' delimiter", at);
      at = this.space(this.value(this.space(at + 1), depth));
      if (this.units[at] === '}') return at + 1;
      if (this.units[at] !== ',') throw this.error("Expecting ',' delimiter", at);
      at = this.space(at + 1);
    }
  }

  array(begin: number, depth: number): number {
    let at = this.space(begin);
    if (this.units[at] === ']') return at + 1;
    for (;;) {
      at = this.space(this.value(at, depth));
      if (this.units[at] === ']') return at + 1;
      if (this.units[at] !== ',') throw this.error("Expecting ',' delimiter", at);
      at = this.space(at + 1);
    }
  }

  /** `begin`: the position after the opening quote. */
  string(begin: number): number {
    const { units } = this;
    const unterminated = () => this.error('Unterminated string starting at', begin - 1);
    let at = begin;
    for (;;) {
      const unit = units[at];
      if (unit === undefined) throw unterminated();
      if (unit === '"') return at + 1;
      if (unit <= '\u001f') throw this.error('Invalid control character at', at);
      at += 1;
      if (unit !== '\\') continue;
      const escaped = units[at];
      if (escaped === undefined) throw unterminated();
      if (escaped === 'u') {
        at = this.unicodeEscape(at + 1);
        continue;
      }
      if (!'"\\/bfnrt'.includes(escaped)) throw this.error('Invalid \\escape', at - 1);
      at += 1;
    }
  }

  /** `at`: the position after `\u`. */
  unicodeEscape(at: number): number {
    const code = this.hex(at, at + 4);
    const end = at + 4;
    const isHigh = code >= 0xd800 && code <= 0xdbff;
    if (!isHigh || end + 6 >= this.units.length || !this.says('\\u', end)) return end;
    const low = this.hex(end + 2, end + 6);
    return low >= 0xdc00 && low <= 0xdfff ? end + 6 : end;
  }

  hex(from: number, to: number): number {
    if (to >= this.units.length) throw this.error('Invalid \\uXXXX escape', from - 1);
    const digits = this.units.slice(from, to).join('');
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.error('Invalid \\uXXXX escape', from - 1);
    return Number.parseInt(digits, 16);
  }

  number(at: number): number {
    const rest = this.units.slice(at, at + MAX_INT_DIGITS * 2).join('');
    const whole = /^-?(?:0|[1-9]\d*)/.exec(rest)?.[0];
    if (whole === undefined) throw this.error('Expecting value', at);
    const tail = /^(?:\.\d+)?(?:[eE][-+]?\d+)?/.exec(rest.slice(whole.length))![0];
    const digits = whole.replace('-', '').length;
    if (tail === '' && digits > MAX_INT_DIGITS) {
      throw new PythonJsonError(
        `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion: value has ${digits} digits; ` +
          'use sys.set_int_max_str_digits() to increase the limit',
      );
    }
    return at + whole.length + tail.length;
  }
}
