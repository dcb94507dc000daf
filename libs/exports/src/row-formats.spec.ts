import { readFileSync } from 'node:fs';
import { type JsonObject, type Message, type MessageBlock, parseJson, TASK_ROW_FORMATS, type ToolSpec } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { pythonJson } from './python-json.ts';
import { columnsOf, type RowFormat, rowFormatOf, rowOf } from './row-formats.ts';
import type { TaskContent } from './task-content.ts';
import { parquetProblem } from './task-file.ts';

interface Fixture {
  environment: string;
  version: number;
  split: string;
  index: number;
  tools: ToolSpec[];
  difficulty: { avg_reward: number; num_rollouts: number };
  tasks: Record<
    'plain' | 'conversation',
    { spec: JsonObject; prompt: MessageBlock[]; conversation: Message[]; rows: Record<RowFormat, string> }
  >;
  columns: Record<RowFormat, object | null>;
}

/** The rows that the Python package writes (integrations/python/tests/test_rows.py reads the same file). Numbers keep their digits. */
const fixture = parseJson(readFileSync(new URL('../../../tests/fixtures/task-rows.json', import.meta.url), 'utf8')) as unknown as Fixture;
const FORMATS: RowFormat[] = ['skyrl-script', ...TASK_ROW_FORMATS];

function contentOf(name: 'plain' | 'conversation'): TaskContent {
  const { environment, split, tools } = fixture;
  const { spec, prompt, conversation: messages } = fixture.tasks[name];
  const [version, index] = [Number(fixture.version), Number(fixture.index)];
  const difficulty = { avg_reward: Number(fixture.difficulty.avg_reward), num_rollouts: Number(fixture.difficulty.num_rollouts) };
  return { environment, version, split, index, tools, spec, prompt, messages, difficulty };
}

test('the fixture has every format', () => {
  expect(Object.keys(fixture.columns).toSorted()).toEqual(FORMATS.toSorted());
});

describe.each(FORMATS)('%s', (format) => {
  test.each(['plain', 'conversation'] as const)('the row of a %s prompt, byte for byte', (name) => {
    expect(pythonJson(rowOf(contentOf(name), format))).toBe(fixture.tasks[name].rows[format]);
  });

  test('the types of its Parquet columns, in the order of the rows', () => {
    const columns = columnsOf(format, true);
    expect(columns).toEqual(fixture.columns[format]);
    if (columns !== null) expect(Object.keys(columns)).toEqual(Object.keys(rowOf(contentOf('plain'), format)));
  });
});

test('without rewards no column is empty', () => {
  for (const format of FORMATS) {
    const row = rowOf({ ...contentOf('plain'), difficulty: null }, format);
    const columns = columnsOf(format, false);
    if (columns !== null) expect([format, Object.keys(columns)]).toEqual([format, Object.keys(row)]);
    expect([format, JSON.stringify([row, columns]).includes('avg_reward')]).toEqual([format, false]);
  }
});

test('the format of SkyRL’s prompts', () => {
  expect(rowFormatOf('skyrl', 'text')).toBe('skyrl-script');
  expect(rowFormatOf('skyrl', 'messages')).toBe('skyrl');
  expect(rowFormatOf('verl', 'text')).toBe('verl');
});

test('a Parquet file has no calls, results and images', () => {
  expect(parquetProblem(rowOf(contentOf('plain'), 'trl'))).toBeNull();
  expect(parquetProblem(rowOf(contentOf('conversation'), 'trl'))).toMatch(/ends in \.jsonl/);
  expect(parquetProblem(rowOf(contentOf('conversation'), 'openrlhf'))).toBeNull();
});
