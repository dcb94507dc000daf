import { expect, test } from 'vitest';
import { refOf, runOfSegment, runPath, segmentOfRun } from './address.ts';

test.each(['.', '..', '~.', '~..', '~~.', '...', '.a', '~', '~a', 'a/..', '%2e', 'x y'])(
  'a run named %j has a unique address that browsers do not change',
  (name) => {
    expect(runOfSegment(segmentOfRun(name))).toBe(name);
    const path = runPath('acme', name);
    expect(new URL(path, 'https://palestra.example').pathname).toBe(path);
  },
);

test('only names that a browser would resolve as a relative path are escaped', () => {
  expect(['.', '..', '~.', '...', 'a/b'].map((name) => runPath('acme', name))).toEqual([
    '/acme/runs/~.',
    '/acme/runs/~..',
    '/acme/runs/~~.',
    '/acme/runs/...',
    '/acme/runs/a%2Fb',
  ]);
});

test('a comparison names a run by its id if its name could not be read from a list', () => {
  const ref = (name: string) => refOf({ id: 'the-id', name });
  expect(['a b', 'a/b', 'lr=1,wd=0', ' a', 'a\n', '  '].map(ref)).toEqual(['a b', 'a/b', 'the-id', 'the-id', 'the-id', 'the-id']);
});
