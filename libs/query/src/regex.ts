import { MAX_REGEX_SIZE, regexSize } from '@palestra/protocol';
import { RE2JS, RE2JSException } from 're2js';
import type { Clause, Query, RegexValue } from './ast.ts';
import { QueryError } from './query-error.ts';

/** Letters that match non-ASCII letters when case is ignored (ſ, K), or whose case depends on the locale (Turkish i). */
const foldsOddly = /[^\x20-\x7e]|[ksi]/i;
const MIN_LITERAL = 3;

/** Returns a linear-time test whether the pattern occurs in a text. Throws QueryError for syntax that RE2 does not support. */
export function compileRegex(value: RegexValue): (text: string) => boolean {
  const span = { position: value.position, length: value.length, token: `/${value.pattern}/${value.ignoreCase ? 'i' : ''}` };
  if (regexSize(value.pattern) > MAX_REGEX_SIZE)
    throw new QueryError(`The regex is too large: its repetitions may stand for ${MAX_REGEX_SIZE} parts together.`, span);
  try {
    const compiled = RE2JS.compile(value.pattern, value.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
    return (text) => compiled.test(text);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const why = error.message.replace(/^error parsing regexp: /, '').replaceAll('(?i)', '');
    throw new QueryError(`The regex is not one of RE2, which has no back-references and no look-around: ${why}`, span);
  }
}

/** Compiles every regex of a query, so that an invalid one fails before anything runs. */
export function compileRegexes(query: Query): Map<RegexValue, (text: string) => boolean> {
  return new Map(query.clauses.flatMap(regexesOf).map((value) => [value, compileRegex(value)]));
}

export function regexesOf(clause: Clause): RegexValue[] {
  const isRegex = (value: { kind: string }): value is RegexValue => value.kind === 'regex';
  switch (clause.kind) {
    case 'text':
      return [clause.value].filter(isRegex);
    case 'field':
      return clause.values.filter(isRegex);
    case 'group':
      return clause.alternatives.flatMap((alternative) => alternative.clauses.flatMap(regexesOf));
  }
}

/**
 * Returns a text that every match contains, for a prefilter by LIKE: the longest run of plain characters outside groups. Null without
 * a run of at least three characters, and for syntax that this function does not understand (alternatives, inline flags, \Q).
 */
export function requiredLiteral(value: RegexValue): string | null {
  const runs = plainRuns(value.pattern);
  if (runs === null) return null;
  const pieces = value.ignoreCase ? runs.flatMap((run) => run.split(foldsOddly)) : runs;
  const longest = pieces.reduce((best, piece) => (piece.length > best.length ? piece : best), '');
  return longest.length >= MIN_LITERAL ? longest : null;
}

function plainRuns(pattern: string): string[] | null {
  const runs = [''];
  let depth = 0;
  const breakRun = () => runs.push('');
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    if (character === '|') return null;
    if (character === '[') {
      const end = classEnd(pattern, at);
      if (end === null) return null;
      at = end;
      breakRun();
    } else if (character === '(') {
      if (pattern[at + 1] === '?' && pattern[at + 2] !== ':') return null;
      depth++;
      breakRun();
    } else if (character === ')') {
      depth--;
      breakRun();
    } else if (character === '\\') {
      const escaped = pattern[++at] ?? '';
      // An escaped letter or digit is a class, an assertion or a code. Those with an argument (\p{L}, \x{41}, \Q) are not understood.
      if (/[pPxQ0-9]/.test(escaped)) return null;
      if (/[A-Za-z]/.test(escaped)) breakRun();
      else if (depth === 0) runs[runs.length - 1] += escaped;
    } else if ('*?{'.includes(character)) {
      const repeat = character === '{' ? /^\{\d+(?:,\d*)?\}/.exec(pattern.slice(at))?.[0] : character;
      // A brace that is no repetition is an ordinary character.
      if (repeat === undefined) return null;
      // The previous character is optional.
      runs[runs.length - 1] = dropLast(runs.at(-1)!);
      at += repeat.length - 1;
      breakRun();
    } else if ('.^$+'.includes(character)) breakRun();
    else if (depth === 0) runs[runs.length - 1] += character;
  }
  return runs;
}

/** The position of the bracket that closes the class at `open`; null if the class is nested or not closed. */
function classEnd(pattern: string, open: number): number | null {
  let at = open + (pattern[open + 1] === '^' ? 2 : 1);
  // A bracket in first position is a character of the class.
  if (pattern[at] === ']') at++;
  for (; at < pattern.length; at++) {
    if (pattern[at] === '\\') at++;
    else if (pattern[at] === '[') return null;
    else if (pattern[at] === ']') return at;
  }
  return null;
}

/** Removes the last character, which may be a surrogate pair. */
function dropLast(text: string): string {
  return [...text].slice(0, -1).join('');
}
