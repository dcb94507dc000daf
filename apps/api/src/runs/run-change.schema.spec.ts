import { expect, test } from 'vitest';
import { checkedRunChangeSchema } from './run-change.schema.ts';

test('rejects a nameRegex that RE2 does not compile, with its path', () => {
  expect(checkedRunChangeSchema.safeParse({ settings: { nameRegex: '(?<step>\\d+)' } }).success).toBe(true);
  const { error } = checkedRunChangeSchema.safeParse({ settings: { nameRegex: '(' } }, { reportInput: true });
  expect(error?.issues).toEqual([{ code: 'custom', message: 'expected a regex of RE2', path: ['settings', 'nameRegex'], input: '(' }]);
});
