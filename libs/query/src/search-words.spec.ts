import { expect, test } from 'vitest';
import { searchWords } from './index.ts';

test('a text is searched by its runs of letters and digits', () => {
  expect(searchWords("It's foo.bar(), /usr/bin/python3.11 -5 Größe 日本語 a_b\n")).toEqual([
    'it',
    's',
    'foo',
    'bar',
    'usr',
    'bin',
    'python3',
    '11',
    '5',
    'größe',
    '日本語',
    'a',
    'b',
  ]);
  expect(searchWords(' ... ')).toEqual([]);
});
