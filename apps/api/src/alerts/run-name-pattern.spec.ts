import fc from 'fast-check';
import { expect, test } from 'vitest';
import { matchesName } from './run-name-pattern.ts';

test.each([
  [null, 'anything', true],
  ['grpo', 'grpo', true],
  ['grpo', 'grpo-2', false],
  ['grpo-*', 'grpo-2', true],
  ['*-eval', 'grpo-eval', true],
  ['a*a', 'a', false],
  ['a*b*c', 'a-b-c', true],
  ['a*b*c', 'acb', false],
  ['*', '', true],
  ['a.b', 'axb', false],
])('%s and %s', (pattern, name, expected) => expect(matchesName(pattern, name)).toBe(expected));

test('matches what a regular expression matches', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
  fc.assert(
    fc.property(letters, letters, (pattern, text) => {
      const name = text.replaceAll('*', 'c');
      expect(matchesName(pattern, name)).toBe(new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(name));
    }),
  );
});
