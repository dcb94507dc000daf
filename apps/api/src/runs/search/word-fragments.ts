import { requiredLiteral } from '@palestra/query';

/** The index folds the Turkish letter I as the locale of the database says. */
const LETTERS = /[a-zA-HJ-Z]{3,}/g;

/**
 * Lower-case letters that stand within the words of every text that the pattern matches, for a prefilter by the index of words. Empty when the pattern
 * requires none: alternatives, optional parts.
 */
export function wordFragments(pattern: string): string[] {
  const ignoreCase = pattern.startsWith('(?i)');
  const literal = requiredLiteral({
    kind: 'regex',
    pattern: ignoreCase ? pattern.slice(4) : pattern,
    ignoreCase,
    position: 0,
    length: pattern.length,
  });
  return [...new Set(literal?.match(LETTERS)?.map((letters) => letters.toLowerCase()))];
}
