import { expect, test } from 'vitest';
import { pairedRows } from './pairing.ts';

const action = (index: number) => ({ index, kind: 'call' as const, tool: 'x', error: false, reward: null });
const one = (a: number | null, b: number | null, same = false) => ({
  a: a === null ? null : action(a),
  b: b === null ? null : action(b),
  same,
});

test('different actions stand side by side, and equal actions stay in place', () => {
  const rows = [one(0, 0, true), one(1, null), one(2, null), one(null, 1), one(3, 2, true), one(null, 3)];
  expect(pairedRows(rows)).toEqual([one(0, 0, true), one(1, 1), one(2, null), one(3, 2, true), one(null, 3)]);
  expect(pairedRows([])).toEqual([]);
});
