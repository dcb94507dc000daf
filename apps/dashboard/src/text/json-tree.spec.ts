import { describe, expect, test } from 'vitest';
import { findInTree, pathOf, previewNode, rowsOf, type TreeRow, type TreeState } from './json-tree.ts';

const state: TreeState = { openLevels: 2, toggled: new Map(), ranges: new Map(), hits: new Map() };
const ids = (rows: readonly TreeRow[]) => rows.map(({ id }) => id);

test('rows are the open nodes in order, with JSONPaths', () => {
  const value = { a: [{ b: 1 }, []], 'odd key': { c: { d: 2 } } };
  expect(ids(rowsOf(value, state))).toEqual(['$', '$.a', '$.a[0]', '$.a[1]', '$["odd key"]', '$["odd key"].c']);
  expect(ids(rowsOf(value, { ...state, toggled: new Map<object, boolean>([[value.a, false]]) }))).toEqual([
    '$',
    '$.a',
    '$["odd key"]',
    '$["odd key"].c',
  ]);
  expect(pathOf('$', 'a"b')).toBe('$["a\\"b"]');
});

test('a search opens the way to every hit in names and values, and only that', () => {
  const value = { a: { b: { c: { Needle: 1, other: 0 } } }, x: { y: { z: 'no' } }, list: ['a NEEDLE here'] };
  const hits = findInTree(value, 'needle');
  expect(ids(rowsOf(value, { ...state, openLevels: 0, hits }))).toEqual([
    '$',
    '$.a',
    '$.a.b',
    '$.a.b.c',
    '$.a.b.c.Needle',
    '$.a.b.c.other',
    '$.x',
    '$.list',
    '$.list[0]',
  ]);
  expect(findInTree(value, '').size).toBe(0);
  expect(findInTree([true, null, 1_234], '1234').size).toBe(1);
});

describe('large values', () => {
  test('a node shows a page of its children, and the page of the first hit', () => {
    const list = Array.from({ length: 50_000 }, (_, i) => i);
    const rows = rowsOf(list, state);
    expect(rows).toHaveLength(52);
    expect(rows.at(-1)).toMatchObject({ kind: 'more', count: 49_950, range: [0, 1_050] });
    const found = rowsOf(list, { ...state, hits: findInTree(list, '41234') });
    expect(found).toHaveLength(53);
    expect(ids(found)).toContain('$[41234]');
    expect(found[1]).toMatchObject({ kind: 'more', count: 41_200, range: [40_200, 41_250] });
  });
  test('a wide value opens only its first nodes', () => {
    const wide = Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => [1]));
    expect(rowsOf(wide, state).length).toBeLessThan(160);
  });
  test('a depth of 10 000 is neither read nor searched to its end', () => {
    let deep: unknown = 'needle';
    for (let i = 0; i < 10_000; i += 1) deep = { a: deep };
    expect(rowsOf(deep, state)).toHaveLength(3);
    expect(findInTree(deep, 'needle').size).toBe(0);
    expect(previewNode(deep as object)).toBe('{a: {a: {a: {a: {…}}}}}');
  });
  test('the preview of a node has a bounded length', () => {
    expect(previewNode({ text: 'x'.repeat(1e6), more: 1 }).length).toBeLessThan(180);
    expect(previewNode({ a: 'b', c: [1, null] })).toBe('{a: "b", c: [1, null]}');
  });
});
