import { expect, test } from 'vitest';
import { nextPath } from './next-path.ts';

test.each(['/', '/environments/local/my-guess/play', '/environments/a/b?tab=tools&task=3'])('%s is a path of this origin', (path) => {
  expect(nextPath(path)).toBe(path);
});

test.each([
  undefined,
  ['/a'],
  '',
  'a',
  '//evil.example',
  '/\\evil.example',
  '/a//evil.example',
  'https://evil.example',
  '/a"><script>',
  '/a\r\nSet-Cookie: x=1',
  '/a#b',
  `/${'a'.repeat(501)}`,
])('%j is not', (path) => {
  expect(nextPath(path)).toBe('/');
});
