import { expect, test } from 'vitest';
import { asCommand, asCurl, shellWord } from './commands.ts';
import { EXPORT_FORMATS, estimateRows, FORMAT_NAMES } from './formats.ts';

test('any query is quoted for the shell', () => {
  expect(shellWord('a/b:c')).toBe('a/b:c');
  expect(shellWord(`it's "x" $HOME`)).toBe(`'it'\\''s "x" $HOME'`);
  expect(shellWord('')).toBe(`''`);
  const request = { run: 'n64 / pass@k', query: `step:1.. "don't"`, format: 'hf', lens: 'canonical', redact: true } as const;
  expect(asCommand(request)).toBe(
    `palestra rollouts export --run 'n64 / pass@k' --query 'step:1.. "don'\\''t"' --format hf --redact --out dataset`,
  );
  expect(asCommand({ ...request, query: '', lens: 'skyrl', redact: false })).toBe(
    "palestra rollouts export --run 'n64 / pass@k' --format hf --lens skyrl --out dataset",
  );
  expect(asCurl('http://h:1', request)).toContain(`-d '{"run":"n64 / pass@k","query":"step:1.. \\"don'\\''t\\""`);
});

test('the estimate of rows names what a row is', () => {
  expect(FORMAT_NAMES).toHaveLength(9);
  expect(estimateRows('jsonl', { count: 1, count_is: 'exact' })).toBe('1 row, one per rollout');
  expect(estimateRows('parquet', { count: 100_000, count_is: 'at_least' })).toBe('at least 100000 rows, one per rollout');
  expect(estimateRows('preference', { count: 8, count_is: 'exact' })).toBe('At most one pair per group, from 8 rollouts');
  expect(estimateRows('curriculum', undefined)).toBe('Counting…');
  for (const name of FORMAT_NAMES) expect(EXPORT_FORMATS[name].purpose).not.toBe('');
});
