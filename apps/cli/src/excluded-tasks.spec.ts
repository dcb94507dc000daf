import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readExcluded } from './excluded-tasks.ts';
import { UsageError } from './server-settings.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'palestra-excluded-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const key = (digit: string) => digit.repeat(64);
const fileOf = (name: string, ...lines: string[]) => {
  const file = path.join(folder, name);
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
};

describe('--exclude', () => {
  test('splits and files', async () => {
    const file = fileOf('keys.jsonl', key('a'), '', key('b'), key('a'));
    expect(await readExcluded(['acme/math:test', file])).toEqual({
      exclude: [{ environment: 'acme/math', split: 'test' }],
      excludeKeys: [key('a'), key('b')],
    });
  });

  test.each([
    ['a column', { task_key: key('c') }],
    ['tinker, areal', { palestra: { task_key: key('c') } }],
    ['inspect, messages', { metadata: { task_key: key('c') } }],
    ['slime', { metadata: { palestra: { task_key: key('c') } } }],
    ['nemo-gym', { verifier_metadata: { palestra: { task_key: key('c') } } }],
    ['openrlhf without other columns', { label: JSON.stringify({ task_key: key('c') }) }],
  ])('rows of %s', async (_name, row) => {
    expect((await readExcluded([fileOf('rows.jsonl', JSON.stringify(row))])).excludeKeys).toEqual([key('c')]);
  });

  test.each(['missing.jsonl', 'acme:test', 'acme/math'])('refuses %s', async (value) => {
    await expect(readExcluded([value])).rejects.toThrow(UsageError);
  });

  test('names the line without a key', async () => {
    await expect(readExcluded([fileOf('script.jsonl', key('d'), '{"prompt": "[]"}')])).rejects.toThrow('script.jsonl:2 has no task_key');
  });
});
