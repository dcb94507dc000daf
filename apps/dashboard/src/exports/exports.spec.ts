import { expect, test } from 'vitest';
import { asCommand, asCurl, shellWord } from './commands.ts';
import { EXPORT_FORMATS, estimateRows, FORMAT_NAMES } from './formats.ts';

test('a query survives the shell, whatever stands in it', () => {
  expect(shellWord('a/b:c')).toBe('a/b:c');
  expect(shellWord(`it's "x" $HOME`)).toBe(`'it'\\''s "x" $HOME'`);
  expect(shellWord('')).toBe(`''`);
  const asked = { run: 'n64 / pass@k', query: `step:1.. "don't"`, format: 'hf', lens: 'canonical', redact: true } as const;
  expect(asCommand(asked)).toBe(
    `palestra rollouts export --run 'n64 / pass@k' --query 'step:1.. "don'\\''t"' --format hf --redact --out dataset`,
  );
  expect(asCommand({ ...asked, query: '', lens: 'skyrl', redact: false })).toBe(
    "palestra rollouts export --run 'n64 / pass@k' --format hf --lens skyrl --out dataset",
  );
  expect(asCurl('http://h:1', asked)).toContain(`-d '{"run":"n64 / pass@k","query":"step:1.. \\"don'\\''t\\""`);
});

test('rows are foretold as what they are', () => {
  expect(FORMAT_NAMES).toHaveLength(8);
  expect(estimateRows('jsonl', { total: 1, total_is: 'exact' })).toBe('1 row, one a rollout');
  expect(estimateRows('parquet', { total: 10_000, total_is: 'at_least' })).toBe('over 10000 rows, one a rollout');
  expect(estimateRows('preference', { total: 8, total_is: 'exact' })).toBe('at most one pair a group, out of 8 rollouts');
  expect(estimateRows('curriculum', undefined)).toBe('counting');
  for (const name of FORMAT_NAMES) expect(EXPORT_FORMATS[name].purpose).not.toBe('');
});
