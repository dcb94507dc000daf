import { expect, test } from 'vitest';
import { verifiersLibrary } from './verifiers-library.ts';

test.each([
  ['>=0.4', 'verifiers', 'verifiers'],
  ['==0.4.0', 'verifiers', 'verifiers'],
  ['>=0.10', 'verifiers', 'verifiers'],
  ['>=0.1.5', 'verifiers-legacy', 'verifiers'],
  ['', 'verifiers-legacy', 'verifiers'],
  ['~=0.1', 'verifiers-legacy', 'verifiers'],
  ['~=0.1.9', 'verifiers-legacy', 'verifiers-legacy'],
  ['==0.1.14', 'verifiers-legacy', 'verifiers-legacy'],
  ['>=0.1.9, <0.4', 'verifiers-legacy', 'verifiers-legacy'],
  ['<=0.3.1', 'verifiers-legacy', 'verifiers-legacy'],
])('verifiers%s is played as %s with load_environment, else as %s', (specifier, withEnvironment, without) => {
  expect([verifiersLibrary(specifier, true), verifiersLibrary(specifier, false)]).toEqual([withEnvironment, without]);
});
