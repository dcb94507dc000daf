import { expect, test } from 'vitest';
import { JsonBounds, MAX_JSON_DEPTH, MAX_JSON_VALUES } from './json-bounds.ts';

const excess = (text: string) => new JsonBounds().push(Buffer.from(text));
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

test('takes what real documents have', () => {
  expect(excess('{"a": [1, 2, {"b": "x"}], "c": null}')).toBeNull();
  expect(excess(nested(MAX_JSON_DEPTH))).toBeNull();
});

test('refuses depth and numbers of values', () => {
  expect(excess(nested(MAX_JSON_DEPTH + 1))).toContain('nested deeper');
  expect(excess(`[${'1,'.repeat(MAX_JSON_VALUES)}1]`)).toContain('more than');
});

test('does not count what stands in strings, also behind escaped quotes', () => {
  const brackets = '['.repeat(MAX_JSON_DEPTH + 1);
  expect(excess(JSON.stringify({ text: brackets }))).toBeNull();
  expect(excess(JSON.stringify({ text: `\\"${brackets}` }))).toBeNull();
  expect(excess(`{"a": "\\\\", "b": ${nested(MAX_JSON_DEPTH + 1)}}`)).toContain('nested deeper');
});

test('ends at a string that never does', () => {
  expect(excess('{"a": "\\')).toBeNull();
});

test('finds the same however the bytes are cut', () => {
  const text = Buffer.from(`{"a": "\\\\", "b": "\\\\\\"${'['.repeat(MAX_JSON_DEPTH + 1)}", "c": ${nested(MAX_JSON_DEPTH + 1)}}`);
  const harmless = text.subarray(0, text.indexOf('"c"'));
  for (const size of [1, 2, 3, 7]) {
    const inPieces = (bytes: Buffer) => {
      const bounds = new JsonBounds();
      let found: string | null = null;
      for (let at = 0; at < bytes.length && found === null; at += size) found = bounds.push(bytes.subarray(at, at + size));
      return found;
    };
    expect(inPieces(harmless), `${size}`).toBeNull();
    expect(inPieces(text), `${size}`).toContain('nested deeper');
  }
});
