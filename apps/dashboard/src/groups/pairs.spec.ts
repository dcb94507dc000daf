import { expect, test } from 'vitest';
import { pairsOf } from './pairs.ts';

const member = (id: string, reward: number | null, sample = 0) => ({ id, reward, sample });

test('pairs have scored samples only, the best first', () => {
  expect(pairsOf([member('a', 0), member('b', null), member('c', 1), member('d', 0.5)])).toEqual({ twoBest: 'c,d', bestAndWorst: 'c,a' });
  expect(pairsOf([member('a', -1), member('b', -2)])).toEqual({ twoBest: 'a,b', bestAndWorst: 'a,b' });
  // Equal rewards: by sample.
  expect(pairsOf([member('a', 1, 2), member('b', 1, 0), member('c', 1, 1)])).toEqual({ twoBest: 'b,c', bestAndWorst: 'b,a' });
  expect(pairsOf([member('a', 1), member('b', null)])).toEqual({ twoBest: null, bestAndWorst: null });
});
