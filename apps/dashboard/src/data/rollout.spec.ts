import type { RolloutOutline } from '@palestra/protocol';
import { expect, test } from 'vitest';
import { PAGE, pageQuery } from './rollout.ts';

const keyOf = (index: readonly number[], page: number) => pageQuery('r', { index, total: index.length } as RolloutOutline, page).queryKey;

test('a message that arrives late reads its full page again, and one at the end does not', () => {
  const all = Array.from({ length: 2 * PAGE + 1 }, (_, i) => i);
  const before = all.filter((index) => index !== 10);
  expect(keyOf(all, 0)).not.toEqual(keyOf(before, 0));
  expect(keyOf([...all, all.length], 0)).toEqual(keyOf(all, 0));
  expect(keyOf([...all, all.length], 1)).toEqual(keyOf(all, 1));
});
