import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Action, align } from './diff.ts';

const actions = (text: string): Action[] =>
  [...text].map((hash, index) => ({ index, kind: 'call', tool: hash, error: false, reward: null, hash }));
const alignedHashes = (a: string, b: string) => align(actions(a), actions(b)).map((row) => `${row.a?.hash ?? '-'}${row.b?.hash ?? '-'}`);

test('aligns the actions of both rollouts', () => {
  expect(alignedHashes('abcd', 'abxd')).toEqual(['aa', 'bb', 'c-', '-x', 'dd']);
  expect(alignedHashes('', 'ab')).toEqual(['-a', '-b']);
  expect(alignedHashes('abc', 'abc')).toEqual(['aa', 'bb', 'cc']);
});

test('loses no action, keeps both orders, and is symmetric', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 30 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      const rows = align(actions(a), actions(b));
      expect(rows.flatMap((row) => row.a?.hash ?? []).join('')).toBe(a);
      expect(rows.flatMap((row) => row.b?.hash ?? []).join('')).toBe(b);
      const same = rows.filter((row) => row.same);
      expect(same.every((row) => row.a!.hash === row.b!.hash)).toBe(true);
      expect(rows.every((row) => row.same === (row.a !== null && row.b !== null))).toBe(true);
      expect(align(actions(b), actions(a)).filter((row) => row.same)).toHaveLength(same.length);
    }),
  );
});
