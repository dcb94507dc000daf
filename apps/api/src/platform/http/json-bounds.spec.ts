import { expect, test } from 'vitest';
import { assertBoundedJson, MAX_JSON_DEPTH, MAX_JSON_VALUES } from './json-bounds.ts';

const check = (text: string) => () => assertBoundedJson(Buffer.from(text), MAX_JSON_DEPTH);
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

test('takes what real documents have', () => {
  expect(check('{"a": [1, 2, {"b": "x"}], "c": null}')).not.toThrow();
  expect(check(nested(MAX_JSON_DEPTH))).not.toThrow();
});

test('refuses depth and numbers of values', () => {
  expect(check(nested(MAX_JSON_DEPTH + 1))).toThrow('nested deeper');
  expect(check(`[${'1,'.repeat(MAX_JSON_VALUES)}1]`)).toThrow('more than');
});

test('does not count what stands in strings, also behind escaped quotes', () => {
  const brackets = '['.repeat(MAX_JSON_DEPTH + 1);
  expect(check(JSON.stringify({ text: brackets }))).not.toThrow();
  expect(check(JSON.stringify({ text: `\\"${brackets}` }))).not.toThrow();
  expect(check(`{"a": "\\\\", "b": ${nested(MAX_JSON_DEPTH + 1)}}`)).toThrow('nested deeper');
});

test('ends at a string that never does', () => {
  expect(check('{"a": "\\')).not.toThrow();
});
