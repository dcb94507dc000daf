import { expect, test } from 'vitest';
import { BoundedLabel } from './metrics.ts';

test('a label keeps its first values and replaces others by "other"', () => {
  const label = new BoundedLabel(2);
  expect(['a', 'b', 'c', 'a', 'd'].map((value) => label.of(value))).toEqual(['a', 'b', 'other', 'a', 'other']);
  expect(new BoundedLabel().of('x'.repeat(10_000))).toBe('other');
});
