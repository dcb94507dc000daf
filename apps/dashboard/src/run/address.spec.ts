import { expect, test } from 'vitest';
import { runOfSegment, runPath, segmentOfRun } from './address.ts';

test.each(['.', '..', '~.', '~..', '~~.', '...', '.a', '~', '~a', 'a/..', '%2e', 'x y'])(
  'a run named %j has an address of its own, which browsers leave as it is',
  (name) => {
    expect(runOfSegment(segmentOfRun(name))).toBe(name);
    const path = runPath('acme', name);
    expect(new URL(path, 'https://palestra.example').pathname).toBe(path);
  },
);

test('only what a browser would take for a way is written in another way', () => {
  expect(['.', '..', '~.', '...', 'a/b'].map((name) => runPath('acme', name))).toEqual([
    '/acme/runs/~.',
    '/acme/runs/~..',
    '/acme/runs/~~.',
    '/acme/runs/...',
    '/acme/runs/a%2Fb',
  ]);
});
