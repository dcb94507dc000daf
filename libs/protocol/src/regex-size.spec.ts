import { expect, test } from 'vitest';
import { MAX_REGEX_SIZE, regexSize } from './regex-size.ts';

test.each([
  ['abc', 3],
  ['a{1000}', 1_000],
  ['a{2,30}b', 31],
  ['(?:ab){10}', 60],
  ['[a{9}]+', 2],
  ['[]a]x', 2],
  ['\\p{Greek}{5}', 5],
  ['a{,5}', 5],
])('%s has about %i parts', (pattern, size) => {
  expect(regexSize(pattern)).toBeGreaterThanOrEqual(size);
  expect(regexSize(pattern)).toBeLessThan(size + 10);
});

test.each([
  'a{1000}a{1000}a{1000}',
  '((a{50}){50})',
  '(?i)(((a?){30}){30}){30}',
  '[^\\]]{999}[[:alpha:]]{999}x{999}',
  '(a{1000}'.repeat(3),
])('%s is too large', (pattern) => {
  expect(regexSize(pattern)).toBeGreaterThan(MAX_REGEX_SIZE);
});
