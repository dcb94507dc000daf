import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RegexValue } from './ast.ts';
import { compileRegex, QueryError } from './index.ts';
import { requiredLiteral } from './regex.ts';
import { cpuTime } from '../../../tests/support/cpu-time.ts';
import { full } from '../../../tests/support/full.ts';

const regex = (pattern: string, ignoreCase = false): RegexValue => ({
  kind: 'regex',
  pattern,
  ignoreCase,
  position: 5,
  length: pattern.length + 2,
});

test.each(['(a)\\1', '(?=x)', '(?!x)', '(?<=x)y', '(a', '[z-a]', 'a{1001}', 'a**', '\\'])('%s is refused by name and place', (pattern) => {
  expect(() => compileRegex(regex(pattern))).toThrow(QueryError);
  expect(() => compileRegex(regex(pattern))).toThrow(/not one of RE2/);
  expect(() => compileRegex(regex(pattern))).toThrow(expect.objectContaining({ position: 5, token: `/${pattern}/` }));
});

test('matches anywhere, ignores case when told to, and takes linear time', () => {
  expect(compileRegex(regex('b+\\/c'))('abb/cd')).toBe(true);
  expect(compileRegex(regex('B'))('b')).toBe(false);
  expect(compileRegex(regex('STRASSE', true))('Hauptstrasse')).toBe(true);
  const started = cpuTime();
  expect(compileRegex(regex('(x+x+)+y'))('x'.repeat(500_000))).toBe(false);
  expect(compileRegex(regex('^(a|aa|a?)*$'))(`${'a'.repeat(100_000)}b`)).toBe(false);
  expect(cpuTime() - started).toBeLessThan(2_000);
});

describe('requiredLiteral', () => {
  test.each([
    ['Traceback', false, 'Traceback'],
    ['^Trace.*most recent$', false, 'most recent'],
    ['a\\.b\\/c', false, 'a.b/c'],
    ['abcd?efg', false, 'abc'],
    ['abcd*', false, 'abc'],
    ['abcd+ef', false, 'abcd'],
    ['ab(cdef)gh', false, null],
    ['abc(def|x)', false, null],
    ['[abc]def', false, 'def'],
    ['[]abc]def', false, 'def'],
    ['[[:alpha:]]def', false, null],
    ['(?i)abcdef', false, null],
    ['(?:abc)?defg', false, 'defg'],
    ['abcd{0,2}efgh', false, 'efgh'],
    ['\\Qa.b\\Eabcdef', false, null],
    ['\\dabc\\w', false, 'abc'],
    ['ab', false, null],
    ['xyz{0}', false, null],
    ['{(}abcdef)*', false, null],
    ['budget', true, 'budget'],
    ['Traceback', true, 'Tracebac'],
    ['kisses', true, null],
    ['größer', true, null],
  ])('of /%s/ (ignoring case: %s) is %j', (pattern, ignoreCase, literal) => {
    expect(requiredLiteral(regex(pattern, ignoreCase))).toBe(literal);
  });

  test('stands in every text that matches', () => {
    // Pieces of a pattern, each with a text that it matches, or that it matches when case is ignored.
    const plain = [...'abcxyz'].map((letter): [string, string] => [letter, letter]);
    const folding: [string, string][] = [
      ['s', 'ſ'],
      ['K', '\u212a'],
      ['b', 'B'],
      ['Z', 'z'],
    ];
    const special: [string, string][] = [
      ...([
        ['.', 'q'],
        ['\\.', '.'],
        ['\\d', '7'],
        ['[ab]', 'b'],
        ['[^a]', 'z'],
        ['[]x]', ']'],
        ['[[:alpha:]]', 'k'],
        ['\\x41', 'A'],
      ] as const),
      ...([
        ['\\pL', 'é'],
        ['(abc)', 'abc'],
        ['(?:xyz)', 'xyz'],
        ['(abc|x)', 'x'],
        ['{(}abcd)', '{}abcd'],
        ['\\Qa.*\\E', 'a.*'],
      ] as const),
    ].map(([source, sample]) => [source, sample]);
    const repeat = fc.constantFrom<[string, number]>(
      ['', 1],
      ['', 1],
      ['', 1],
      ['*', 0],
      ['+', 2],
      ['?', 0],
      ['{0,1}', 0],
      ['{2}', 2],
      ['*?', 0],
    );
    const atom = fc.oneof({ arbitrary: fc.constantFrom(...plain), weight: 20 }, fc.constantFrom(...folding), fc.constantFrom(...special));
    const pieces = fc.array(fc.tuple(atom, repeat), { minLength: 3, maxLength: 12 });
    const runs = full ? 8_000 : 2_500;
    let decided = 0;
    fc.assert(
      fc.property(pieces, fc.boolean(), (all, ignoreCase) => {
        const source = all.map(([[text], [suffix]]) => text + suffix).join('');
        // A repeated group that is not one, {(}abcd)*, keeps its brace.
        const text = all.map(([[, sample], [, times]]) => (times === 0 && sample.startsWith('{') ? '{' : sample.repeat(times))).join('');
        const literal = requiredLiteral(regex(source, ignoreCase));
        const found = matcherOrNull(source, ignoreCase);
        if (literal === null || found === null || !found(text)) return;
        decided++;
        expect(ignoreCase ? asciiLower(text) : text).toContain(ignoreCase ? asciiLower(literal) : literal);
      }),
      { numRuns: runs },
    );
    expect(decided).toBeGreaterThan(runs / 16);
  });
});

/** As ILIKE folds under the C locale. */
const asciiLower = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

function matcherOrNull(source: string, ignoreCase: boolean) {
  try {
    return compileRegex(regex(source, ignoreCase));
  } catch {
    return null;
  }
}
