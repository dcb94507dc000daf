import { expect, test } from 'vitest';
import { readAddress } from './nemo-gym-address.ts';

test.each([
  ['whodunit', 'verify', { name: 'whodunit', run: null, operation: 'verify' }],
  ['whodunit:80', 'search', { name: 'whodunit', run: null, operation: 'search' }],
  ['whodunit@3:80', '', { name: 'whodunit@3', run: null, operation: '' }],
  ['whodunit', 'runs/my run:80/seed_session', { name: 'whodunit', run: 'my run', operation: 'seed_session' }],
  ['whodunit', 'ng-rollout/3-1/verify', { name: 'whodunit', run: null, operation: 'verify' }],
  ['whodunit', 'runs/mine:80/ng-rollout/3-1-a2/search', { name: 'whodunit', run: 'mine', operation: 'search' }],
  ['whodunit', 'runs', { name: 'whodunit', run: null, operation: 'runs' }],
])('%s with %s', (name, rest, expected) => {
  expect(readAddress('palestra', name, rest)).toEqual({ owner: 'palestra', ...expected });
});

test('a longer path is no route', () => {
  expect(readAddress('palestra', 'whodunit', 'a/b')).toBeNull();
  expect(readAddress('palestra', 'whodunit', 'runs/mine/a/b')).toBeNull();
});
