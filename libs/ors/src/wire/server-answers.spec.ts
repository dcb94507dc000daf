import { describe, expect, test } from 'vitest';
import { readBlocks, readToolResult, readTools } from './server-answers.ts';

const output = (rest: string) => `{"ok":true,"output":{"blocks":[{"text":"x","detail":null,"type":"text"}],${rest}}}`;

describe('a tool result', () => {
  test('keeps its text if it is complete', () => {
    const text = output('"metadata":{"id":12345678901234567890,"one":1.0},"reward":1.0,"finished":true');
    expect(readToolResult(text)).toEqual({ text, ok: true, reason: null, reward: 1, finished: true });
  });

  test('gets missing nullable keys and keeps the spelling of numbers', () => {
    const { text, reward } = readToolResult('{"ok":true,"output":{"blocks":[{"text":"x","type":"text"}],"metadata":{"one":1.0}}}');
    expect(text).toContain('"one":1.0');
    expect(reward).toBeNull();
    expect(JSON.parse(text)).toEqual({
      ok: true,
      output: { blocks: [{ text: 'x', type: 'text', detail: null }], metadata: { one: 1 }, reward: null, finished: false },
    });
  });

  test('with NaN or Infinity becomes JSON', () => {
    const { text, reward } = readToolResult(output('"metadata":{"a":NaN,"b":"NaN","c":-Infinity},"reward":NaN,"finished":false'));
    expect(JSON.parse(text).output.metadata).toEqual({ a: null, b: 'NaN', c: null });
    expect(reward).toBeNull();
  });

  test('with a reward beyond a double has a null reward', () => {
    const { text, reward } = readToolResult(output('"metadata":{"one":1.0},"reward":-1e400,"finished":true'));
    expect(text).toBe(output('"metadata":{"one":1.0},"reward":null,"finished":true'));
    expect(reward).toBeNull();
  });

  test.each([
    [`{"ok":false,"error":"'x' is not a valid tool"}`, 'not_found'],
    [`{"ok":false,"error":"Tool input validation error: []"}`, 'input_validation'],
    [`{"ok":false,"error":"Tool name collision: 'x' is"}`, 'name_collision'],
    [`{"ok":false,"error":"anything else","reason":null}`, 'input_validation'],
    [`{"ok":false,"error":"no","reason":"of_its_own"}`, 'of_its_own'],
  ])('%s has the reason %s', (text, reason) => {
    const result = readToolResult(text);
    expect(result).toMatchObject({ ok: false, reason, reward: null, finished: false });
    expect(JSON.parse(result.text)).toMatchObject({ ok: false, reason });
  });

  test.each(['', 'x', '[]', '{}', '{"ok":true}', '{"ok":true,"output":{}}', 'null'])('%j is invalid', (text) => {
    expect(() => readToolResult(text)).toThrow(expect.objectContaining({ code: 'backend_invalid', status: 502 }));
  });
});

test('gives tools exactly the three keys of clients and object schemas', () => {
  const { tools, ...rest } = readTools('{"tools":[{"name":"a","input_schema":{"properties":{}},"extra":1}],"terminal_tool":null}');
  expect(tools).toEqual([{ name: 'a', description: '', input_schema: { properties: {}, type: 'object' } }]);
  expect(rest).toEqual({ terminal_tool: null });
});

test('adds detail to blocks', () => {
  expect(readBlocks('[{"type":"reasoning","text":"r"},{"type":"image","data":"","mimeType":"image/png","detail":{}}]')).toEqual([
    { type: 'reasoning', text: 'r', signature: null, detail: null },
    { type: 'image', data: '', mimeType: 'image/png', detail: {} },
  ]);
});
