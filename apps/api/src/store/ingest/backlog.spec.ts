import { expect, test } from 'vitest';
import { isOverShare } from './backlog.service.ts';

test.each([
  ['an organisation alone may use the whole bound', { a: 100 }, 'a', false],
  ['and not more', { a: 101 }, 'a', true],
  ['another one is not delayed by its burst', { a: 101 }, 'b', false],
  ['or while it uses less than its share', { a: 90, b: 50 }, 'b', false],
  ['two bursts have a half each', { a: 90, b: 51 }, 'b', true],
  ['below the bound a larger part than the share is allowed', { a: 80, b: 20 }, 'a', false],
])('%s', (_name, waiting, orgId, expected) => {
  expect(isOverShare(new Map(Object.entries(waiting)), orgId, 100)).toBe(expected);
});
