import { expect, test } from 'vitest';
import { namesWithoutOwner } from './short-names.ts';

test('owners are left out unless two names would be equal without them', () => {
  expect([...namesWithoutOwner(['palestra/whodunit', 'palestra/ctf', 'math']).values()]).toEqual(['whodunit', 'ctf', 'math']);
  expect([...namesWithoutOwner(['palestra/ctf', 'acme/ctf', 'palestra/math']).values()]).toEqual(['palestra/ctf', 'acme/ctf', 'math']);
});
