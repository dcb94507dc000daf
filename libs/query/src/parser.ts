import type { Clause, FieldClause, GroupClause, Query, TextClause, Value } from './ast.ts';
import { findKey, QUERY_KEYS, type QueryKey, type QueryKeyEntry } from './catalogue.ts';
import { nearest, QueryError } from './query-error.ts';
import { Scanner } from './scanner.ts';
import { readQuoted, readWord, wrongValue } from './values.ts';

export const QUERY_LIMITS = { textLength: 2_000, depth: 20, clauses: 100, regexLength: 200 } as const;

/**
 * Parses a query (docs/query.md). Linear in the length of the text; throws only QueryError. `compileQuery` and `matches` check the
 * regexes, so that the parser in the browser needs no regex engine.
 */
export function parseQuery(text: string): Query {
  if (text.length > QUERY_LIMITS.textLength)
    throw new QueryError(`A query has at most ${QUERY_LIMITS.textLength} characters; this one has ${text.length}.`, {
      position: QUERY_LIMITS.textLength,
      length: text.length - QUERY_LIMITS.textLength,
      token: text.slice(QUERY_LIMITS.textLength),
    });
  const zero = text.indexOf('\0');
  if (zero >= 0) throw new QueryError('A query cannot contain the character U+0000.', { position: zero, length: 1, token: '\0' });
  return new Parser(text).parse();
}

class Parser {
  readonly #scanner: Scanner;
  #depth = 0;
  #clauses = 0;

  constructor(text: string) {
    this.#scanner = new Scanner(text);
  }

  parse(): Query {
    const query = this.#conjunction();
    const { position } = this.#scanner;
    if (this.#scanner.peek() === ')') throw this.#scanner.error('This parenthesis closes nothing.', position, 1);
    checkInClauses(query, this.#scanner);
    return query;
  }

  #conjunction(): Query {
    const scanner = this.#scanner;
    scanner.skipSpace();
    const position = scanner.position;
    let end = position;
    const clauses: Clause[] = [];
    while (!scanner.done && scanner.peek() !== ')' && !this.#atOr()) {
      clauses.push(this.#clause());
      end = scanner.position;
      scanner.skipSpace();
    }
    return { clauses, position, length: end - position };
  }

  #atOr(): boolean {
    const { text, position } = this.#scanner;
    if (!text.startsWith('OR', position) || !/^(?:[\s()]|$)/.test(text.slice(position + 2, position + 3))) return false;
    if (this.#depth === 0)
      throw this.#scanner.error('OR joins clauses inside of parentheses: (a OR b). For the word itself write "OR".', position, 2, '"OR"');
    return true;
  }

  #clause(): Clause {
    const scanner = this.#scanner;
    const position = scanner.position;
    if (++this.#clauses > QUERY_LIMITS.clauses)
      throw scanner.error(`A query has at most ${QUERY_LIMITS.clauses} clauses.`, position, scanner.text.length - position);
    const negated = scanner.take('-');
    if (negated && scanner.atBoundary(false)) throw scanner.error('There is nothing to negate after -.', position, 1);
    if (scanner.peek() === '(') return this.#group(position, negated);
    const key = scanner.takeKey();
    return key === undefined ? this.#text(position, negated) : this.#field(position, negated, key);
  }

  #group(position: number, negated: boolean): GroupClause {
    const scanner = this.#scanner;
    const open = scanner.position++;
    if (++this.#depth > QUERY_LIMITS.depth)
      throw scanner.error(`Parentheses nest at most ${QUERY_LIMITS.depth} deep.`, open, scanner.text.length - open);
    const alternatives: Query[] = [];
    do {
      const alternative = this.#conjunction();
      if (alternative.clauses.length === 0 && !scanner.done)
        throw scanner.error('A clause is missing here: (a OR b).', scanner.position, 1);
      alternatives.push(alternative);
    } while (this.#takeOr());
    if (!scanner.take(')')) throw scanner.error('The parenthesis is never closed: add ).', open, scanner.text.length - open);
    this.#depth--;
    this.#expectBoundary(false);
    return { kind: 'group', negated, alternatives, position, length: scanner.position - position };
  }

  #takeOr(): boolean {
    if (!this.#atOr()) return false;
    this.#scanner.position += 2;
    return true;
  }

  #text(position: number, negated: boolean): TextClause {
    const scanner = this.#scanner;
    const value = this.#textValue();
    this.#expectBoundary(false);
    return { kind: 'text', negated, value, position, length: scanner.position - position };
  }

  #textValue(): TextClause['value'] {
    const scanner = this.#scanner;
    if (scanner.peek() === '"') return { kind: 'text', ...scanner.takeString() };
    const regex = scanner.peek() === '/' ? scanner.takeRegex(false) : undefined;
    if (regex !== undefined) return this.#checkedRegex(regex);
    // Never undefined: the next character is none of those that end a word.
    return { kind: 'text', ...scanner.takeTextWord()! };
  }

  #field(position: number, negated: boolean, key: { text: string; position: number; length: number }): FieldClause {
    const scanner = this.#scanner;
    const entry = findKey(key.text);
    if (entry === undefined) throw this.#unknownKey(key);
    const values: Value[] = [];
    do values.push(this.#value(entry));
    while (scanner.take(','));
    this.#expectBoundary(true);
    return { kind: 'field', negated, key: entry.key, values, position, length: scanner.position - position };
  }

  #unknownKey(key: { text: string; position: number; length: number }): QueryError {
    const suggestion = nearest(
      key.text,
      QUERY_KEYS.map((entry) => entry.key),
    );
    const hint = suggestion === undefined ? 'For a text with a colon use quotes.' : `Did you mean ${suggestion}:?`;
    const shown = key.text.length > 40 ? `${key.text.slice(0, 40)}…` : key.text;
    return this.#scanner.error(`There is no key ${shown}:. ${hint}`, key.position, key.length, suggestion);
  }

  #value(entry: QueryKeyEntry & { key: QueryKey }): Value {
    const scanner = this.#scanner;
    const position = scanner.position;
    if (scanner.peek() === '"') {
      const quoted = scanner.takeString();
      return readQuoted(entry, quoted.text, scanner.text.slice(position, scanner.position), quoted);
    }
    if (scanner.peek() === '/') return this.#regexValue(entry);
    const word = scanner.takeValueWord();
    if (word === undefined)
      throw wrongValue(entry, scanner.text.slice(position, position + 1), { position, length: 1 }, 'A value is missing.');
    return readWord(entry, word.text, word);
  }

  #regexValue(entry: QueryKeyEntry): Value {
    const scanner = this.#scanner;
    const position = scanner.position;
    const regex = scanner.takeRegex(true);
    if (regex === undefined) {
      const length = scanner.text.length - position;
      throw scanner.error('The regex is never closed, or empty: write /regex/ or /regex/i, and \\/ for a slash inside.', position, length);
    }
    if (entry.kind !== 'text') {
      const raw = scanner.text.slice(position, scanner.position);
      throw wrongValue(entry, raw, regex, 'A regex fits texts only.');
    }
    return this.#checkedRegex(regex);
  }

  #checkedRegex(regex: { pattern: string; ignoreCase: boolean; position: number; length: number }) {
    if (regex.pattern.length > QUERY_LIMITS.regexLength)
      throw this.#scanner.error(`A regex has at most ${QUERY_LIMITS.regexLength} characters.`, regex.position, regex.length);
    return { kind: 'regex' as const, ...regex };
  }

  #expectBoundary(comma: boolean): void {
    const scanner = this.#scanner;
    if (scanner.atBoundary(false)) return;
    const what = comma ? 'a space, a comma' : 'a space';
    throw scanner.error(`Here ${what} or the end is expected; put quotes around a text with " ( or ).`, scanner.position, 1);
  }
}

/** `in:` restricts a text search, so a conjunction with `in:` also needs a text. */
function checkInClauses(query: Query, scanner: Scanner): void {
  for (const clause of query.clauses) {
    if (clause.kind === 'group') for (const alternative of clause.alternatives) checkInClauses(alternative, scanner);
    else if (clause.kind === 'field' && clause.key === 'in' && !hasText(query))
      throw scanner.error('in: says where to look for a text; add the text: in:assistant "I give up"', clause.position, clause.length);
  }
}

function hasText(query: Query): boolean {
  return query.clauses.some((clause) => clause.kind === 'text' || (clause.kind === 'group' && clause.alternatives.some(hasText)));
}
