import { expect, test } from 'vitest';
import { requestedFormat } from './output-format.ts';

test.each([
  [['runs', '-o', 'json'], 'json'],
  [['runs', '-ojson'], 'json'],
  [['runs', '--output=yaml', '--nonsense'], 'yaml'],
  [['--output', 'jsonl', 'runs'], 'jsonl'],
  [['prepare-tasks', '--output', 'tasks.parquet'], 'table'],
  [['prepare-tasks', '--output', 'tasks.parquet', '-o', 'json'], 'json'],
  [['runs', '-o'], 'table'],
  [['docker', 'run', '--', '-o', 'json'], 'table'],
  [[], 'table'],
])('%j asks for %s', (words, expected) => {
  expect(requestedFormat(words)).toBe(expected);
});
