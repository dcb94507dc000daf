import { parseJson } from '@palestra/protocol';
import { afterEach, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { printList, printOne } from './output.ts';
import type { OutputFormat } from './output-format.ts';

afterEach(() => vi.restoreAllMocks());

async function printed(print: () => Promise<void>): Promise<string> {
  let text = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  await print();
  vi.restoreAllMocks();
  return text;
}
const rows = [
  { id: 1, name: 'a "quoted", [odd] {name}: x', tags: [], more: { deep: [1, null] } },
  { id: 2, name: 'b', tags: ['t'], more: {} },
];
const list = (output: OutputFormat) => printed(() => printList({ output }, rows, [['id', ({ id }) => id]]));

test('a list is the same data in every format for programs', async () => {
  expect(await list('table')).toBe('id\n1\n2\n');
  expect(await list('json')).toBe(`${JSON.stringify(rows, null, 2)}\n`);
  expect(
    (await list('jsonl'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual(rows);
  expect(parse(await list('yaml'))).toEqual(rows);
});

test('an empty list is valid data', async () => {
  const empty = (output: OutputFormat) => printed(() => printList({ output }, [], [['id', () => 1]]));
  expect([await empty('json'), await empty('jsonl'), await empty('yaml')]).toEqual(['[]\n', '', '[]\n']);
});

test('numbers keep the form in which the server wrote them', async () => {
  const value = parseJson('{"float":1.0,"id":12345678901234567890}');
  expect(await printed(() => printOne({ output: 'jsonl' }, value, () => {}))).toBe('{"float":1.0,"id":12345678901234567890}\n');
  expect(await printed(() => printOne({ output: 'json' }, value, () => {}))).toBe('{\n  "float": 1.0,\n  "id": 12345678901234567890\n}\n');
});

test('no format passes control characters to the terminal', async () => {
  const value = { name: 'a\u001b[31m\u009b31mb' };
  for (const output of ['json', 'jsonl', 'yaml'] as const)
    // oxlint-disable-next-line no-control-regex -- these characters must not be there
    expect(await printed(() => printOne({ output }, value, () => {})), output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  expect(JSON.parse(await printed(() => printOne({ output: 'json' }, value, () => {})))).toEqual(value);
});
