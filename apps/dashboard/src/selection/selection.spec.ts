import { parseQuery, printQuery } from '@palestra/query';
import { expect, test } from 'vitest';
import { annotateProblem, type Chosen, compareProblem, groupsClause, queryOf, tasksClause, toggled } from './selection.ts';

const keys = ['a', 'b', 'c', 'd', 'e'];
const after = (...steps: [key: string, anchor: string | null][]) =>
  [...steps.reduce<ReadonlySet<string>>((chosen, [key, anchor]) => toggled(chosen, keys, key, anchor), new Set())].toSorted().join('');

test('a toggle changes one row, and with an anchor all rows from it', () => {
  expect(after(['b', null])).toBe('b');
  expect(after(['b', null], ['b', null])).toBe('');
  expect(after(['b', null], ['d', 'b'])).toBe('bcd');
  expect(after(['d', null], ['b', 'd'])).toBe('bcd');
  // The anchor was taken away: so is the range.
  expect(after(['a', null], ['d', 'a'], ['b', null], ['c', 'b'])).toBe('ad');
  // An anchor that is no longer in the list.
  expect(after(['b', null], ['d', 'gone'])).toBe('bd');
});

const rollouts = (count: number): Chosen => ({
  kind: 'rollouts',
  ids: Array.from({ length: count }, (_, i) => `0d9e3c1a-7a3e-4b57-9a39-${String(i).padStart(12, '0')}`),
});
const everything = (isExact: boolean): Chosen => ({ kind: 'query', q: 'step:1', count: 9, isExact, asOf: '1' });

test('actions that are not possible say why', () => {
  expect([1, 2, 4, 5].map((count) => compareProblem(rollouts(count)) === null)).toEqual([false, true, true, false]);
  expect(compareProblem(everything(true))).toMatch(/one by one/);
  expect([annotateProblem(rollouts(1_000)), annotateProblem(everything(true))]).toEqual([null, null]);
  expect(annotateProblem(rollouts(1_001))).toMatch(/at most 1000/);
  expect(annotateProblem(everything(false))).toMatch(/too many/);
});

test('selections are queries that the API understands', () => {
  const canonical = (q: string | null) => (q === null ? null : printQuery(parseQuery(q)));
  const group = (key: string, step: number | null, phase = 'train') => ({ key, step, phase });
  expect(canonical(queryOf(rollouts(2)))).toBe('id:0d9e3c1a-7a3e-4b57-9a39-000000000000,0d9e3c1a-7a3e-4b57-9a39-000000000001');
  expect(queryOf(rollouts(51))).toBe(null);
  expect(canonical(groupsClause('', [group('1', 3), group('2', 3)]))).toBe('step:3 phase:train group:1,2');
  expect(canonical(groupsClause('env:x', [group('1', 3), group('2', null, 'unknown')]))).toBe(
    'env:x (step:3 phase:train group:1 OR step:null group:2)',
  );
  const task = (index: number | null, key = 'k', environment: string | null = 'acme/math') => ({
    task: { key, index, split: 'train' },
    environment,
  });
  expect(canonical(tasksClause('phase:eval', [task(0), task(7)]))).toBe('phase:eval env:acme/math split:train task:0,7');
  expect(canonical(tasksClause('', [task(0), task(null, 'sha256 of it'), task(1, 'k', 'other/env')]))).toBe(
    '(env:acme/math split:train task:0 OR task:"sha256 of it" OR env:other/env split:train task:1)',
  );
  expect(
    groupsClause(
      '',
      Array.from({ length: 400 }, (_, i) => group(`${4_611_686_018_427_387_904n + BigInt(i)}`, 1)),
    ),
  ).toBe(null);
});
