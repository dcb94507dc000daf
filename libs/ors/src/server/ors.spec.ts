import { describe, expect, test } from 'vitest';
import {
  PalestraError,
  parseBody,
  readCallBody,
  readCreateBody,
  readCreateSessionBody,
  readScoreGroupBody,
  readTaskBody,
  readTaskRangeBody,
  stringifyJson,
} from '@palestra/protocol';

const issues = (read: () => unknown): unknown => {
  try {
    read();
  } catch (error) {
    if (error instanceof PalestraError && error.status === 422) return error.detail;
    throw error;
  }
  return 'accepted';
};
const types = (read: () => unknown) => (issues(read) as { type: string; loc: unknown[] }[]).map(({ type, loc }) => [type, loc.join('.')]);

describe('bodies', () => {
  test('rejects a missing, mistyped and malformed body', () => {
    expect(types(() => readCallBody(parseBody(null)))).toEqual([['missing', 'body']]);
    expect(types(() => readCallBody([]))).toEqual([['model_attributes_type', 'body']]);
    expect(types(() => parseBody(Buffer.from('{bad')))).toEqual([['json_invalid', 'body.1']]);
    expect(readCreateSessionBody(undefined)).toEqual({ env: null, taskId: null });
  });

  test('lists all issues, fields first, unknown keys last', () => {
    expect(types(() => readCallBody({ input: 3, z: 1 }))).toEqual([
      ['missing', 'body.name'],
      ['dict_type', 'body.input'],
      ['extra_forbidden', 'body.z'],
    ]);
    expect(types(() => readCallBody(JSON.parse('{"name":"a","input":{},"__proto__":1}')))).toEqual([['extra_forbidden', 'body.__proto__']]);
  });

  test('accepts integers as pydantic does', () => {
    const index = (value: unknown) => () => readTaskBody({ split: 's', index: value });
    expect(index('7')()).toEqual({ split: 's', index: 7 });
    expect(readTaskBody(parseBody(Buffer.from('{"split":"s","index":-1.0}')))).toEqual({ split: 's', index: -1 });
    expect(types(index('x'))).toEqual([['int_parsing', 'body.index']]);
    expect(types(index(1.5))).toEqual([['int_from_float', 'body.index']]);
    expect(types(index(null))).toEqual([['int_type', 'body.index']]);
    expect(readTaskRangeBody({ split: 's', start: null })).toEqual({ split: 's', start: null, stop: null });
  });

  test('requires exactly one form of the task in a create and keeps numbers', () => {
    const body = readCreateBody(parseBody(Buffer.from('{"task_spec":{"n":1.0,"big":12345678901234567890}}')));
    expect(stringifyJson(body.task_spec)).toBe('{"n":1.0,"big":12345678901234567890}');
    for (const wrong of [{}, { split: 's' }, { index: 0 }, { task_spec: {}, split: 's', index: 0 }, { task_spec: null }]) {
      expect(types(() => readCreateBody(wrong))).toEqual([['value_error', 'body']]);
    }
  });

  test('checks which blocks a message may have', () => {
    const group = (role: string, type: string) => () => readScoreGroupBody({ candidates: [{ messages: [{ role, blocks: [{ type }] }] }] });
    expect(issues(group('assistant', 'reasoning'))).toBe('accepted');
    expect(types(group('user', 'tool_call'))).toEqual([['value_error', 'body.candidates.0.messages.0']]);
    expect(types(group('tool', 'text'))).toEqual([['literal_error', 'body.candidates.0.messages.0.role']]);
    expect(types(group('user', 'video'))).toEqual([['union_tag_invalid', 'body.candidates.0.messages.0.blocks.0']]);
  });
});
