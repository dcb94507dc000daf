import { expect, test } from 'vitest';
import { newTaskId, newOrderedTaskId } from './ids.ts';

test('task ids that nobody is told have the form of the others, differ, and come in the order of time', () => {
  expect(newTaskId()).toMatch(/^[0-9a-f]{32}$/);
  const ids = Array.from({ length: 10_000 }, (_, n) => newOrderedTaskId(1_700_000_000_000 + Math.floor(n / 100)));
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  expect(ids.toSorted()).toEqual(ids);
});
