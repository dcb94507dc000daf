import { describe, expect, test } from 'vitest';
import { safeParts, staysInside } from './safe-path.ts';

describe('safeParts', () => {
  test('removes what does not change a path', () => {
    expect(safeParts('./a//b/./c/')).toEqual(['a', 'b', 'c']);
    expect(safeParts('./')).toEqual([]);
    expect(safeParts('a..b/...')).toEqual(['a..b', '...']);
  });

  test.each([
    ['../a', 'leaves the folder'],
    ['a/../../b', 'leaves the folder'],
    ['/etc/passwd', 'absolute'],
    ['a\0b', 'NUL'],
    ['..\\a', 'backslash'],
    ['a/.git/hooks/post-checkout', 'Git'],
    ['.GIT/config', 'Git'],
    ['a'.repeat(256), 'name longer than 255'],
    ['ab/'.repeat(400), 'longer than 1024'],
  ])('refuses %j', (name, reason) => {
    expect(() => safeParts(name)).toThrow(reason);
    expect(() => safeParts(name)).toThrow(expect.objectContaining({ code: 'source_invalid' }));
  });
});

test.each([
  ['a', 'b', true],
  ['a', 'b/c', true],
  ['a/b/c', '../../d', true],
  ['a', '.', true],
  ['a/b', '..', true],
  ['a', '..', false],
  ['a/b', '../..', false],
  ['a', '/etc', false],
  ['a', '', false],
  // By a link `b/c` to the root it would lead out of it.
  ['a', 'b/c/..', false],
  ['a', '..\\..', false],
])('a link at %j to %j stays inside: %j', (name, target, expected) => {
  expect(staysInside(name, target)).toBe(expected);
});
