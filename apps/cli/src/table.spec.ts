import { describe, expect, it } from 'vitest';
import { tableLines } from './table.ts';

describe('a table', () => {
  it('has columns as wide as their widest cell', () => {
    expect(
      tableLines(
        ['id', 'name'],
        [
          [1, 'a'],
          [22, null],
        ],
      ),
    ).toEqual(['id  name', '1   a', '22  -']);
  });

  it('aligns wide characters, and replaces control characters', () => {
    expect(
      tableLines(
        ['name', 'n'],
        [
          ['日本', 1],
          ['a\u001b[31mb\n', 2],
        ],
      ),
    ).toEqual(['name      n', '日本      1', 'a [31mb   2']);
  });

  it('fits into the width: the widest columns are cut, whole characters stay', () => {
    const lines = tableLines(['id', 'description', 'more'], [['1', 'd'.repeat(60), 'm'.repeat(30)]], 40);
    expect(lines.map((line) => line.length)).toEqual([expect.any(Number), 40]);
    expect(lines[1]).toBe(`1   ${'d'.repeat(16)}…  ${'m'.repeat(16)}…`);
    expect(tableLines(['a'], [['😀'.repeat(9)]], 9)[1]).toBe('😀😀😀😀…');
  });

  it('keeps a minimum width on a terminal that is too narrow', () => {
    expect(tableLines(['one', 'two'], [['x'.repeat(30), 'y'.repeat(30)]], 5)[1]).toBe('xxxxxxx…  yyyyyyy…');
  });
});
